package cli

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestNormalise(t *testing.T) {
	t.Parallel()
	root := newCall(Env{}).root()
	tests := []struct{ in, want string }{
		{"plan -json", "plan --json"},
		{"plan --json", "plan --json"},
		{"-store=sqlite:x plan -out p", "--store=sqlite:x plan --out p"},
		{"-store sqlite:-json plan", "--store sqlite:-json plan"},
		{"apply -message -json", "apply --message -json"},
		{"apply -message=-json", "apply --message=-json"},
		{"apply -auto-approve -message x", "apply --auto-approve --message x"},
		{"next -n 5 -n=5", "next -n 5 -n=5"},
		{"logs -f 12", "logs -f 12"},
		{"fmt -", "fmt -"},
		{"validate -- -json -x", "validate -- -json -x"},
		{"plan -out", "plan --out"},
		{"-h", "-h"},
	}
	for _, tt := range tests {
		got, err := normalise(root, strings.Fields(tt.in))
		if err != nil || !slices.Equal(got, strings.Fields(tt.want)) {
			t.Errorf("normalise(%q) = %q, %v, want %q", tt.in, got, err, tt.want)
		}
	}
}

// Arguments that are normalised already stay as they are, and whatever is
// written, none is lost or added.
func TestNormaliseIsStable(t *testing.T) {
	t.Parallel()
	root := newCall(Env{}).root()
	words := rapid.SliceOf(rapid.SampledFrom([]string{
		"plan", "-json", "--json", "-out", "-out=x", "-store", "sqlite:x", "--", "-", "-n", "5", "-n=5", "-f", "-unknown", "-x=y", "", "--=", "-=",
	}))
	rapid.Check(t, func(t *rapid.T) {
		args := words.Draw(t, "args")
		once, err := normalise(root, args)
		if err != nil {
			t.Fatal(err)
		}
		twice, err := normalise(root, once)
		if err != nil || !slices.Equal(once, twice) || len(once) != len(args) {
			t.Fatalf("%q becomes %q and then %q (%v)", args, once, twice, err)
		}
	})
}
