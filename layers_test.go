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

// A package imports what the law allows, and the law allows nothing that no
// package needs: what is allowed and unused hides the next mistake.
func TestLayers(t *testing.T) {
	t.Parallel()
	l := readLaw(t)
	used := map[string]bool{}
	for _, p := range listPackages(t) {
		name := short(p.ImportPath)
		allowed, listed := l.imports[name]
		if !listed {
			t.Errorf("package %s is not in layers.txt: add it, with what it may import", name)
			continue
		}
		used[name] = true
		inTests := slices.Concat(p.TestImports, p.XTestImports)
		checkImports(t, name, ownPackages(name, p.Imports), nil, allowed)
		checkImports(t, name+" (tests)", ownPackages(name, inTests), allowed, l.tests[name])
		for prefix, users := range l.modules {
			imports := slices.ContainsFunc(p.Imports, func(path string) bool { return strings.HasPrefix(path, prefix) })
			if may := slices.Contains(users, name); imports && !may {
				t.Errorf("%s imports %s: only %v may (layers.txt, [modules])", name, prefix, users)
			} else if may && !imports {
				t.Errorf("%s may import %s and does not: take it out of layers.txt, [modules]", name, prefix)
			}
		}
	}
	for name := range l.imports {
		if !used[name] {
			t.Errorf("layers.txt has %s, which is no package", name)
		}
	}
}

// ownPackages returns the packages of this module among paths, but for name.
func ownPackages(name string, paths []string) []string {
	var own []string
	for _, path := range paths {
		if to := short(path); to != "" && to != name {
			own = append(own, to)
		}
	}
	return own
}

// checkImports compares what name imports with what it may: what all of it may,
// which need not be used here, and what is allowed for this alone.
func checkImports(t *testing.T, name string, imports, may, alone []string) {
	t.Helper()
	for _, to := range imports {
		if !slices.Contains(may, to) && !slices.Contains(alone, to) {
			t.Errorf("%s imports %s, which layers.txt does not allow", name, to)
		}
	}
	for _, to := range alone {
		if !slices.Contains(imports, to) || slices.Contains(may, to) {
			t.Errorf("layers.txt allows %s to import %s, which is not needed: take it out", name, to)
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
