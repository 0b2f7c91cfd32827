package ax_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/axctl/ax"

// law is layers.txt, read.
type law struct {
	imports map[string][]string // package → packages of this module
	tests   map[string][]string // package → more of them, for its tests
	modules map[string][]string // prefix of an outside module → packages
}

func readLaw(t *testing.T) law {
	t.Helper()
	text, err := os.ReadFile("layers.txt")
	if err != nil {
		t.Fatal(err)
	}
	l := law{map[string][]string{}, map[string][]string{}, map[string][]string{}}
	modules := false
	for _, line := range strings.Split(string(text), "\n") {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
			continue
		case line == "[modules]":
			modules = true
			continue
		}
		name, rest, ok := strings.Cut(line, ":")
		if !ok {
			t.Fatalf("layers.txt: no colon in %q", line)
		}
		name = strings.TrimSpace(name)
		if modules {
			l.modules[name] = strings.Fields(rest)
			continue
		}
		own, tests, _ := strings.Cut(rest, "+")
		l.imports[name] = strings.Fields(own)
		l.tests[name] = strings.Fields(tests)
	}
	return l
}

type goPackage struct {
	ImportPath                         string
	Imports, TestImports, XTestImports []string
}

func listPackages(t *testing.T) []goPackage {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Imports,TestImports,XTestImports", "./...")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var ps []goPackage
	for dec := json.NewDecoder(strings.NewReader(string(out))); dec.More(); {
		var p goPackage
		if err := dec.Decode(&p); err != nil {
			t.Fatal(err)
		}
		ps = append(ps, p)
	}
	return ps
}

// short returns the name layers.txt has for an import path, or "" for one of
// another module.
func short(path string) string {
	if path == module {
		return "."
	}
	if rest, ok := strings.CutPrefix(path, module+"/"); ok {
		return rest
	}
	return ""
}

func TestLayers(t *testing.T) {
	t.Parallel()
	l := readLaw(t)
	for _, p := range listPackages(t) {
		name := short(p.ImportPath)
		allowed, listed := l.imports[name]
		if !listed {
			t.Errorf("package %s is not in layers.txt: add it, with what it may import", name)
			continue
		}
		check := func(imports, allowed []string, where string) {
			for _, path := range imports {
				to := short(path)
				if to == "" || to == name || slices.Contains(allowed, "*") || slices.Contains(allowed, to) {
					continue
				}
				t.Errorf("%s%s imports %s, which layers.txt does not allow", name, where, to)
			}
		}
		check(p.Imports, allowed, "")
		inTests := append(slices.Clone(allowed), l.tests[name]...)
		check(p.TestImports, inTests, " (test)")
		check(p.XTestImports, inTests, " (test)")
		if slices.Contains(allowed, "*") {
			continue
		}
		for _, path := range p.Imports {
			for prefix, users := range l.modules {
				if strings.HasPrefix(path, prefix) && !slices.Contains(users, name) {
					t.Errorf("%s imports %s: only %v may (layers.txt, [modules])", name, path, users)
				}
			}
		}
	}
}

// TestRootHasNoBehaviour keeps the words free of clocks, stores and parsers.
func TestRootHasNoBehaviour(t *testing.T) {
	t.Parallel()
	for _, p := range listPackages(t) {
		if p.ImportPath != module {
			continue
		}
		for _, path := range p.Imports {
			if strings.Contains(path, ".") {
				t.Errorf("the root package imports %s: it may use the standard library only", path)
			}
		}
	}
}
