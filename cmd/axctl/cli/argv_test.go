package cli

import (
	"slices"
	"strings"
	"testing"
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
