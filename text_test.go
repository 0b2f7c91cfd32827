package ax_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/axctl/ax"
)

func TestCleanText(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, in, want string }{
		{"clean", "exit status 1", "exit status 1"},
		{"nul and bad bytes", "a\x00b\xff\xfec", "a\uFFFDb\uFFFDc"},
		{"lone surrogate", "x\xed\xa0\x80y", "x\uFFFDy"},
		{"long, of bad bytes", strings.Repeat("\xff", 100), "\uFFFD… (cut)"},
		{"cut on a rune", strings.Repeat("ä", 20), strings.Repeat("ä", 11) + "… (cut)"},
	}
	for _, tt := range tests {
		if got := ax.CleanText(tt.in, 32); got != tt.want {
			t.Errorf("%s: CleanText(%q) = %q, want %q", tt.name, tt.in, got, tt.want)
		}
	}
}

func TestCleanTextIsAlwaysStorable(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		in := string(rapid.SliceOfN(rapid.Byte(), 0, 200).Draw(t, "in"))
		got := ax.CleanText(in, 64)
		if !utf8.ValidString(got) || strings.IndexByte(got, 0) >= 0 || len(got) > 64 {
			t.Fatalf("CleanText(%q) = %q", in, got)
		}
		if again := ax.CleanText(got, 64); again != got {
			t.Fatalf("cleaning twice: %q, then %q", got, again)
		}
	})
}
