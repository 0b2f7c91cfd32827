package http_test

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/axctl/ax/plugins"
	axhttp "github.com/axctl/ax/plugins/builtin/http"
	"github.com/axctl/ax/plugins/plugintest"
	pb "github.com/axctl/ax/plugins/proto"
	"github.com/axctl/ax/plugins/sdk"
)

// target is a server that does what the path says.
func target(t *testing.T) *httptest.Server {
	mux := http.NewServeMux()
	mux.HandleFunc("/status/{code}", func(w http.ResponseWriter, r *http.Request) {
		code := 0
		_, _ = fmt.Sscan(r.PathValue("code"), &code)
		w.WriteHeader(code)
		_, _ = io.WriteString(w, "hello from the server")
	})
	mux.HandleFunc("/echo", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_ = json.NewEncoder(w).Encode(map[string]any{
			"method": r.Method, "body": string(body), "host": r.Host,
			"type": r.Header.Get("Content-Type"), "token": r.Header.Get("X-Token"), "auth": r.Header.Get("Authorization"),
			"key": r.Header.Get("Idempotency-Key"), "agent": r.Header.Get("User-Agent"),
			"items": []any{map[string]any{"id": 7}},
		})
	})
	mux.HandleFunc("/to", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, r.URL.Query().Get("url"), http.StatusTemporaryRedirect)
	})
	mux.HandleFunc("/loop", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/loop", http.StatusFound) })
	mux.HandleFunc("/wait", func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	mux.HandleFunc("/cut", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "1000")
		_, _ = io.WriteString(w, "only this")
	})
	mux.HandleFunc("/large", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, strings.Repeat("x", 3_000_000))
	})
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}

func start(t *testing.T) *plugintest.Executor {
	return plugintest.Start(t, sdk.Options{Handlers: []plugins.Handler{axhttp.New()}})
}

func body(url string, pairs ...any) string {
	m := map[string]any{"url": url}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i].(string)] = pairs[i+1]
	}
	b, err := json.Marshal(m)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func TestConformance(t *testing.T) {
	t.Parallel()
	s := target(t)
	plugintest.Run(t, plugintest.Subject{
		Handler: axhttp.New(),
		Success: body(s.URL + "/status/200"),
		Failure: body(s.URL + "/status/404"),
		Endless: body(s.URL + "/wait"),
	})
}

func TestResults(t *testing.T) {
	t.Parallel()
	s := target(t)
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = closed.Close()
	e := start(t)
	for _, c := range []struct {
		name, body, class, error string // class "" is success; error is a part of it
	}{
		{"200", body(s.URL + "/status/200"), "", ""},
		{"204", body(s.URL + "/status/204"), "", ""},
		{"304", body(s.URL + "/status/304"), "failed", "status 304 Not Modified"},
		{"404", body(s.URL + "/status/404"), "failed", "status 404 Not Found"},
		{"500", body(s.URL + "/status/500"), "failed", "status 500 Internal Server Error"},
		{"502", body(s.URL + "/status/502"), "transient", "status 502 Bad Gateway"},
		{"504", body(s.URL + "/status/504"), "transient", "status 504 Gateway Timeout"},
		{"429", body(s.URL + "/status/429"), "resource", "status 429 Too Many Requests"},
		{"503", body(s.URL + "/status/503"), "resource", "status 503 Service Unavailable"},
		{"503 expected", body(s.URL+"/status/503", "expect_status", []int{503}), "", ""},
		{"200 not expected", body(s.URL+"/status/200", "expect_status", []int{201}), "failed", "status 200 OK"},
		{"text there", body(s.URL+"/status/200", "expect_body", "from the"), "", ""},
		{"text not there", body(s.URL+"/status/200", "expect_body", "h.llo"), "failed", `response does not contain "h.llo"`},
		{"connection refused", body("http://user:hunter2@" + closed.Addr().String()), "transient", "connection refused"},
		{"unknown host", body("http://no-such-host.invalid/"), "transient", "no-such-host.invalid"},
		{"cut short", body(s.URL + "/cut"), "transient", "unexpected EOF"},
		{"redirects without end", body(s.URL + "/loop"), "permanent", "more than 10 redirects"},
		{"redirect not followed", body(s.URL+"/loop", "follow_redirects", false, "expect_status", []int{302}), "", ""},
		{"redirect to a file", body(s.URL + "/to?url=file:///etc/passwd"), "permanent", `redirect to scheme "file"`},
		{"no scheme", body("example.org/x"), "permanent", "url must be http:// or https:// with a host"},
		{"file", body("file:///etc/passwd"), "permanent", "url must be http:// or https:// with a host"},
		{"bad url", body("http://user:hunter2@exa mple/%zz"), "permanent", "url: "},
		{"body and json", body(s.URL+"/echo", "body", "x", "json", 1), "permanent", "only one of body and json"},
		{"header with a line break", body(s.URL+"/echo", "headers", map[string]string{"X-A": "1\r\nX-B: 2"}), "permanent", `header "X-A" has a line break in it`},
		{"outputs of no JSON", body(s.URL+"/status/200", "outputs", map[string]string{"a": "b"}), "failed", "response is no JSON"},
		{"outputs not there", body(s.URL+"/echo", "outputs", map[string]string{"a": "items.1.id"}), "failed", `response has no "items.1.id"`},
		{"metadata", body("http://169.254.169.254/latest/meta-data"), "permanent", "address 169.254.169.254 is link-local or a metadata service"},
		{"metadata by IPv6", body("http://[::ffff:169.254.169.254]/"), "permanent", "is link-local"},
		{"metadata as a number", body("http://2852039166/"), "", ""},
		{"link-local", body("http://[fe80::1%25lo]:1/"), "permanent", "is link-local"},
		{"redirect to metadata", body(s.URL + "/to?url=http://169.254.169.254/"), "permanent", "is link-local"},
	} {
		t.Run(c.name, func(t *testing.T) {
			res := e.Do(e.Job("http", c.body))
			if c.name == "metadata as a number" { // resolvers differ: it may be no host at all
				if res.Status == "success" {
					t.Error("the metadata service was reached")
				}
				return
			}
			if want, told := strings.CutPrefix(c.error, "status "); told && !strings.HasPrefix(want, fmt.Sprint(res.Report.HttpStatus)+" ") {
				t.Errorf("reported status %d", res.Report.HttpStatus)
			}
			if res.Class != c.class || !strings.Contains(res.Error, c.error) {
				t.Errorf("got %s %q", res.Class, res.Error)
			}
			if strings.Contains(res.Error, "hunter2") {
				t.Errorf("a password is in the error: %s", res.Error)
			}
		})
	}
}

func TestRequest(t *testing.T) {
	t.Parallel()
	s := target(t)
	e := start(t)
	fields := map[string]string{}
	for _, f := range []string{"method", "body", "host", "type", "token", "key", "agent"} {
		fields[f] = f
	}
	fields["id"] = "items.0.id"
	j := e.Job("http", body(s.URL+"/echo", "method", "POST", "json", map[string]any{"a": []int{1}},
		"headers", map[string]string{"X-Token": "t", "Host": "other.example"}, "outputs", fields))
	res := e.Do(j)
	want := map[string]any{
		"method": "POST", "body": `{"a":[1]}`, "host": "other.example", "type": "application/json", "token": "t",
		"key": j.IdempotencyKey, "agent": "ax", "id": 7.0,
	}
	if !maps.Equal(res.Outputs, want) {
		t.Errorf("got %v, want %v; %s", res.Outputs, want, res.Error)
	}
	if !strings.HasPrefix(res.Stdout, "HTTP/1.1 200 OK\n{") {
		t.Errorf("log: %q", res.Stdout)
	}
	res = e.Do(e.Job("http", body(s.URL+"/large")))
	if res.Status != "success" {
		t.Errorf("%+v", res)
	}
	e.Until("the first MiB", func(_ []*pb.Report, r plugintest.Result) bool {
		return len(r.Stdout) == 1<<20+len("HTTP/1.1 200 OK\n") && len(r.Notes) == 1 && strings.Contains(r.Notes[0], "goes on after 1048576 bytes")
	}, res.Report.BatchNo)
}

// Credentials follow a redirect within a host, and never one to another.
func TestRedirectsAndCredentials(t *testing.T) {
	t.Parallel()
	a, b := target(t), target(t)
	e := start(t)
	for _, c := range []struct {
		name, to, want string
	}{
		{"same host", "/echo", "secret"},
		{"other host", b.URL + "/echo", ""},
		{"other host and back", b.URL + "/to?url=" + a.URL + "/echo", ""},
	} {
		res := e.Do(e.Job("http", body(
			strings.Replace(a.URL, "http://", "http://user:pass@", 1)+"/to?url="+c.to,
			"headers", map[string]string{"X-Token": "secret", "Authorization": "secret"},
			"outputs", map[string]string{"token": "token", "auth": "auth"})))
		if want := map[string]any{"token": c.want, "auth": c.want}; !maps.Equal(res.Outputs, want) {
			t.Errorf("%s: %v, want %v; %s", c.name, res.Outputs, want, res.Error)
		}
	}
}
