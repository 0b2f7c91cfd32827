package shell

import "errors"

// NewWithoutCgroups returns a handler that may make no control groups.
func NewWithoutCgroups() *Handler {
	h := New()
	h.cgroups.find = func(int) (string, error) { return "", errors.New("not in this test") }
	return h
}
