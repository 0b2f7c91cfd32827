// Package schema describes the body of the http handler, apart from its code
// so that axctl can check it without a host.
package schema

import (
	"encoding/json"

	"github.com/axctl/ax/plugins"
)

// Schema returns the schema of the http handler.
func Schema() plugins.Schema {
	str := []plugins.Type{plugins.String}
	minStatus, maxStatus := 100.0, 999.0 // what three digits can say
	return plugins.Schema{
		Handler:   "http",
		Doc:       "Sends one HTTP request and judges the response.",
		Conflicts: [][]string{{"body", "json"}},
		Attributes: []plugins.Attribute{
			{Name: "url", Types: str, Format: plugins.HTTPURL, Doc: "Where to, http or https."},
			{Name: "method", Types: str, Optional: true, Default: json.RawMessage(`"GET"`), Enum: []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}, Doc: "The request's method."},
			{Name: "headers", Types: []plugins.Type{plugins.StringMap}, Optional: true, Format: plugins.HTTPHeaders, Doc: "Request headers. They never follow a redirect to another host."},
			{Name: "body", Types: str, Optional: true, Doc: "Request body as it is; not together with json."},
			{Name: "json", Types: []plugins.Type{plugins.Any}, Optional: true, Doc: "Request body as JSON, with its content type; not together with body."},
			{Name: "expect_status", Types: []plugins.Type{plugins.NumberList}, Optional: true, Format: plugins.Integer, Min: &minStatus, Max: &maxStatus, Doc: "Statuses that mean success. Default: 200 to 299."},
			{Name: "expect_body", Types: str, Optional: true, Doc: "Text that the response's first MiB must contain, as it is."},
			{Name: "follow_redirects", Types: []plugins.Type{plugins.Bool}, Optional: true, Default: json.RawMessage(`true`), Doc: "Follow up to 10 redirects."},
			{Name: "allow_link_local", Types: []plugins.Type{plugins.Bool}, Optional: true, Default: json.RawMessage(`false`), Doc: "Allow link-local and metadata addresses."},
			{Name: "outputs", Types: []plugins.Type{plugins.StringMap}, Optional: true, Doc: "Outputs from a JSON response: name to path, as in \"data.items.0.id\"."},
		},
	}
}
