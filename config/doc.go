// Package config turns HCL text into definitions. It owns the language: which
// blocks, attributes, functions and names there are, what values they take,
// and how a mistake is told. It is the only importer of hcl and cty; what it
// hands on is an ax.Configuration, in which everything is checked, effective
// and canonical.
//
// A load has these steps, and each reports all it finds before it ends:
//
//	files ──> source     read, UTF-8 checked, line ends made LF
//	          parse      files that may hold declarations first
//	          declare    ax, variable, locals, defaults: of all files together
//	          evaluate   variables (given values), then locals in order of use
//	          decode     tasks, file by file on two workers; a file's syntax
//	                     tree is let go when its tasks are decoded
//	          join       duplicates across files, order by name, hash
//
// # Implementation
//
// The names a task, a schedule, a retry or a misfire may have, and their
// built-in defaults, come from the tags of root's structs; a new attribute is
// one field there and one line in task.go. Bodies are read through reader,
// which refuses every name that its word list does not have; nothing is left
// over unseen. Values pass through decoder.eval alone: it refuses references
// to what is not there, and knows sensitive, null and unknown values, so that
// the typed getters above it never meet one. A value is unknown only when the
// mistake that made it so was already told; then the attribute is passed over.
// Handler bodies are checked against the handler's schema in handler.go and
// leave as JSON with sorted keys.
package config
