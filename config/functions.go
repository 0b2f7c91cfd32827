package config

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/tryfunc"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"
)

// maxReadBytes bounds what file and templatefile read.
const maxReadBytes = 1 << 20

// functions are what expressions may call: pure ones, and file functions that
// stay inside folder.
func functions(folder string) map[string]function.Function {
	all := pureFunctions()
	all["file"] = fileFunction(folder)
	all["fileexists"] = fileExistsFunction(folder)
	inner := maps.Clone(all) // a template does not include templates
	all["templatefile"] = templateFunction(folder, inner)
	return all
}

func pureFunctions() map[string]function.Function {
	return map[string]function.Function{
		"abs":             stdlib.AbsoluteFunc,
		"alltrue":         allTrueFunction,
		"anytrue":         anyTrueFunction,
		"can":             tryfunc.CanFunc,
		"ceil":            stdlib.CeilFunc,
		"chomp":           stdlib.ChompFunc,
		"chunklist":       stdlib.ChunklistFunc,
		"coalesce":        stdlib.CoalesceFunc,
		"coalescelist":    stdlib.CoalesceListFunc,
		"compact":         stdlib.CompactFunc,
		"concat":          stdlib.ConcatFunc,
		"contains":        stdlib.ContainsFunc,
		"csvdecode":       stdlib.CSVDecodeFunc,
		"distinct":        stdlib.DistinctFunc,
		"element":         stdlib.ElementFunc,
		"endswith":        textTest(strings.HasSuffix),
		"flatten":         stdlib.FlattenFunc,
		"floor":           stdlib.FloorFunc,
		"format":          stdlib.FormatFunc,
		"formatdate":      stdlib.FormatDateFunc,
		"formatlist":      stdlib.FormatListFunc,
		"indent":          stdlib.IndentFunc,
		"index":           stdlib.IndexFunc,
		"join":            stdlib.JoinFunc,
		"jsondecode":      stdlib.JSONDecodeFunc,
		"jsonencode":      stdlib.JSONEncodeFunc,
		"keys":            stdlib.KeysFunc,
		"length":          lengthFunction,
		"log":             stdlib.LogFunc,
		"lookup":          stdlib.LookupFunc,
		"lower":           stdlib.LowerFunc,
		"max":             stdlib.MaxFunc,
		"merge":           stdlib.MergeFunc,
		"min":             stdlib.MinFunc,
		"parseint":        stdlib.ParseIntFunc,
		"pow":             stdlib.PowFunc,
		"range":           stdlib.RangeFunc,
		"regex":           stdlib.RegexFunc,
		"regexall":        stdlib.RegexAllFunc,
		"replace":         replaceFunction,
		"reverse":         stdlib.ReverseListFunc,
		"sensitive":       sensitiveFunction,
		"setintersection": stdlib.SetIntersectionFunc,
		"setproduct":      stdlib.SetProductFunc,
		"setsubtract":     stdlib.SetSubtractFunc,
		"setunion":        stdlib.SetUnionFunc,
		"signum":          stdlib.SignumFunc,
		"slice":           stdlib.SliceFunc,
		"sort":            stdlib.SortFunc,
		"split":           stdlib.SplitFunc,
		"startswith":      textTest(strings.HasPrefix),
		"strcontains":     textTest(strings.Contains),
		"strrev":          stdlib.ReverseFunc,
		"sum":             sumFunction,
		"substr":          stdlib.SubstrFunc,
		"timeadd":         stdlib.TimeAddFunc,
		"title":           stdlib.TitleFunc,
		"tobool":          stdlib.MakeToFunc(cty.Bool),
		"tolist":          stdlib.MakeToFunc(cty.List(cty.DynamicPseudoType)),
		"tomap":           stdlib.MakeToFunc(cty.Map(cty.DynamicPseudoType)),
		"tonumber":        stdlib.MakeToFunc(cty.Number),
		"toset":           stdlib.MakeToFunc(cty.Set(cty.DynamicPseudoType)),
		"tostring":        stdlib.MakeToFunc(cty.String),
		"trim":            stdlib.TrimFunc,
		"trimprefix":      stdlib.TrimPrefixFunc,
		"trimspace":       stdlib.TrimSpaceFunc,
		"trimsuffix":      stdlib.TrimSuffixFunc,
		"try":             tryfunc.TryFunc,
		"upper":           stdlib.UpperFunc,
		"values":          stdlib.ValuesFunc,
		"zipmap":          stdlib.ZipmapFunc,
	}
}

// lengthFunction is stdlib's length, for strings and objects as well.
var lengthFunction = function.New(&function.Spec{
	Params: []function.Parameter{{Name: "value", Type: cty.DynamicPseudoType, AllowDynamicType: true}},
	Type:   function.StaticReturnType(cty.Number),
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		if args[0].Type() == cty.String {
			return stdlib.Strlen(args[0])
		}
		if t := args[0].Type(); t.IsObjectType() {
			return cty.NumberIntVal(int64(len(t.AttributeTypes()))), nil
		}
		return stdlib.Length(args[0])
	},
})

// replaceFunction takes a pattern between slashes as a regular expression.
var replaceFunction = function.New(&function.Spec{
	Params: []function.Parameter{{Name: "text", Type: cty.String}, {Name: "search", Type: cty.String}, {Name: "by", Type: cty.String}},
	Type:   function.StaticReturnType(cty.String),
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		search := args[1].AsString()
		if len(search) > 1 && strings.HasPrefix(search, "/") && strings.HasSuffix(search, "/") {
			return stdlib.RegexReplace(args[0], cty.StringVal(search[1:len(search)-1]), args[2])
		}
		return stdlib.Replace(args[0], args[1], args[2])
	},
})

var sumFunction = function.New(&function.Spec{
	Params: []function.Parameter{{Name: "list", Type: cty.List(cty.Number)}},
	Type:   function.StaticReturnType(cty.Number),
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		sum := cty.Zero
		for i, v := range args[0].AsValueSlice() {
			if v.IsNull() {
				return cty.NilVal, function.NewArgErrorf(0, "item %d is null", i)
			}
			sum = sum.Add(v)
		}
		return sum, nil
	},
})

var sensitiveFunction = function.New(&function.Spec{
	Params: []function.Parameter{{Name: "value", Type: cty.DynamicPseudoType, AllowNull: true, AllowMarked: true, AllowDynamicType: true}},
	Type:   func(args []cty.Value) (cty.Type, error) { return args[0].Type(), nil },
	Impl:   func(args []cty.Value, _ cty.Type) (cty.Value, error) { return args[0].Mark(sensitive), nil },
})

var (
	allTrueFunction = boolFold(true)
	anyTrueFunction = boolFold(false)
)

// boolFold makes alltrue (of none: true) or anytrue (of none: false).
func boolFold(empty bool) function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{{Name: "list", Type: cty.List(cty.Bool)}},
		Type:   function.StaticReturnType(cty.Bool),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			for _, v := range args[0].AsValueSlice() {
				if v.IsNull() || v.True() != empty {
					return cty.BoolVal(!empty), nil
				}
			}
			return cty.BoolVal(empty), nil
		},
	})
}

func textTest(test func(text, part string) bool) function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{{Name: "text", Type: cty.String}, {Name: "part", Type: cty.String}},
		Type:   function.StaticReturnType(cty.Bool),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			return cty.BoolVal(test(args[0].AsString(), args[1].AsString())), nil
		},
	})
}

func fileFunction(folder string) function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{{Name: "path", Type: cty.String}},
		Type:   function.StaticReturnType(cty.String),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			text, err := readInside(folder, args[0].AsString())
			if err != nil {
				return cty.NilVal, function.NewArgError(0, err)
			}
			return cty.StringVal(text), nil
		},
	})
}

func fileExistsFunction(folder string) function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{{Name: "path", Type: cty.String}},
		Type:   function.StaticReturnType(cty.Bool),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			name, err := inside(args[0].AsString())
			if err != nil {
				return cty.NilVal, function.NewArgError(0, err)
			}
			root, err := os.OpenRoot(folder)
			if err != nil {
				return cty.NilVal, err
			}
			defer root.Close()
			info, err := root.Stat(name)
			return cty.BoolVal(err == nil && info.Mode().IsRegular()), nil
		},
	})
}

// templateFunction evaluates a file as a template with the values given.
func templateFunction(folder string, inner map[string]function.Function) function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{{Name: "path", Type: cty.String}, {Name: "values", Type: cty.DynamicPseudoType}},
		Type:   function.StaticReturnType(cty.String),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			name := args[0].AsString()
			text, err := readInside(folder, name)
			if err != nil {
				return cty.NilVal, function.NewArgError(0, err)
			}
			if !isMap(args[1]) {
				return cty.NilVal, function.NewArgErrorf(1, "values are a map of names")
			}
			template, found := hclsyntax.ParseTemplate([]byte(text), name, hcl.InitialPos)
			if found.HasErrors() {
				return cty.NilVal, function.NewArgError(0, found)
			}
			values := maps.Clone(args[1].AsValueMap())
			if values == nil {
				values = map[string]cty.Value{} // names are unknown then, not forbidden
			}
			v, found := template.Value(&hcl.EvalContext{Variables: values, Functions: inner})
			if found.HasErrors() {
				return cty.NilVal, function.NewArgError(0, found)
			}
			if v.Type() != cty.String {
				return cty.NilVal, function.NewArgErrorf(0, "%s is a single value, not a text", name)
			}
			return v, nil
		},
	})
}

// readInside reads a text file of folder. Neither .. nor a symbolic link leads
// out of it, so a configuration means the same wherever its folder stands.
func readInside(folder, path string) (string, error) {
	name, err := inside(path)
	if err != nil {
		return "", err
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return "", errors.New(reason(folder, err))
	}
	defer root.Close()
	info, err := root.Stat(name)
	switch {
	case err != nil:
		return "", errors.New(strings.TrimSuffix(reason(path, err), "."))
	case !info.Mode().IsRegular():
		return "", fmt.Errorf("%s is no regular file", show(path))
	case info.Size() > maxReadBytes:
		return "", fmt.Errorf("%s is larger than %d MiB", show(path), maxReadBytes>>20)
	}
	f, err := root.Open(name)
	if err != nil {
		return "", errors.New(strings.TrimSuffix(reason(path, err), "."))
	}
	defer f.Close()
	text, err := io.ReadAll(f)
	if err == nil {
		text, err = cleanText(text)
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w", show(path), err)
	}
	return string(text), nil
}

func inside(path string) (string, error) {
	if !utf8.ValidString(path) || !filepath.IsLocal(path) {
		return "", fmt.Errorf("%s is not inside the configuration's folder", show(path))
	}
	return path, nil
}
