package plugins

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
)

// Malformed says what a value, or an item of a list, should be by the attribute's
// format and bounds and what it is, as a sentence goes on after "is"; nothing
// when it is good.
func (a Attribute) Malformed(value any) string {
	switch v := value.(type) {
	case string:
		return malformedText(a.Format, v)
	case map[string]string:
		return malformedMap(a.Format, v)
	case int64:
		return malformedNumber(a, float64(v))
	case float64:
		return malformedNumber(a, v)
	default:
		return ""
	}
}

func malformedText(format Format, text string) string {
	switch format {
	case HTTPURL:
		u, err := url.Parse(text)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return fmt.Sprintf(`a URL with http:// or https:// and a host, as in "https://example.org/path", and this is %q`, text)
		}
	case AbsolutePath:
		if !strings.HasPrefix(text, "/") {
			return fmt.Sprintf("an absolute path, which begins with /, and this is %q", text)
		}
	}
	return ""
}

func malformedMap(format Format, m map[string]string) string {
	if format != HTTPHeaders {
		return ""
	}
	for _, name := range slices.Sorted(maps.Keys(m)) {
		if name == "" || strings.ContainsFunc(name, notInToken) {
			return fmt.Sprintf("a map of headers, and %q cannot be the name of one", name)
		}
		if strings.ContainsFunc(m[name], func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
			return fmt.Sprintf("a map of headers, and the value of %q has a line break or another control character in it", name)
		}
	}
	return ""
}

// notInToken reports a character that RFC 9110 does not have in a header's name.
func notInToken(r rune) bool {
	return r <= ' ' || r >= 0x7f || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r)
}

func malformedNumber(a Attribute, n float64) string {
	kind := "a number"
	if a.Format == Integer {
		kind = "an integer"
	}
	switch {
	case a.Min != nil && a.Max != nil && (n < *a.Min || n > *a.Max):
		return fmt.Sprintf("%s from %v to %v, and this is %v", kind, *a.Min, *a.Max, n)
	case a.Min != nil && n < *a.Min:
		return fmt.Sprintf("%s of at least %v, and this is %v", kind, *a.Min, n)
	case a.Max != nil && n > *a.Max:
		return fmt.Sprintf("%s of at most %v, and this is %v", kind, *a.Max, n)
	case a.Format == Integer && n != float64(int64(n)):
		return fmt.Sprintf("an integer, and this is %v", n)
	default:
		return ""
	}
}
