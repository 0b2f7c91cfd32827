package folder

import "testing"

func TestOwners(t *testing.T) {
	t.Parallel()
	a, b := Claimant{Name: "a"}, Claimant{Name: "b"}
	declared, own := Claimant{Name: "z", Declared: true}, Claimant{Name: "shell", BuiltIn: true}
	got := Owners(map[Claimant][]string{
		b: {"daily", "only"}, a: {"daily", "weekly", "shell"}, declared: {"weekly", "shell"}, own: {"shell"},
	})
	want := map[string]Claimant{"daily": a, "weekly": declared, "only": b, "shell": own}
	if len(got) != len(want) {
		t.Errorf("%v", got)
	}
	for handler, c := range want {
		if got[handler] != c {
			t.Errorf("%s is %+v's, want %+v's", handler, got[handler], c)
		}
	}
}
