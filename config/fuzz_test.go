package config

import (
	"encoding/json"
	"os"
	"testing"
)

// FuzzLoad wants of any text: no panic, no configuration beside errors, each
// diagnostic fit to be shown, and a second load that says the same.
func FuzzLoad(f *testing.F) {
	for _, kind := range []string{"valid", "invalid"} {
		for _, file := range testFilesOf(kind) {
			text, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(text)
		}
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		clean, err := cleanText(text)
		if err != nil {
			return
		}
		first, second := loadBytes(clean), loadBytes(clean)
		if first != second {
			t.Fatalf("two loads differ:\n%s\n%s", first, second)
		}
	})
}

func loadBytes(text []byte) string {
	l := newLoader(testOptions())
	l.folder = "testdata/none"
	l.add("fuzz.hcl", text)
	c := l.decode("fuzz.hcl")
	found := l.finish()
	if found.HasErrors() {
		c = nil
	} else if c == nil {
		panic("neither a configuration nor an error")
	}
	for _, d := range found {
		if s := d.Snippet; s != nil && (s.HighlightStartOffset > s.HighlightEndOffset || s.HighlightEndOffset > len(s.Code)) {
			panic("snippet out of bounds")
		}
		if d.Summary == "" {
			panic("no summary")
		}
	}
	out, err := json.Marshal([]any{c, found})
	if err != nil {
		panic(err)
	}
	return string(out)
}
