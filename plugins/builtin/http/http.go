package http

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/axctl/ax/plugins"
	"github.com/axctl/ax/plugins/builtin/http/schema"
	"github.com/axctl/ax/plugins/sdk"
)

// maxBody is how much of a response is read.
const maxBody = 1 << 20

// Handler is the http handler.
type Handler struct {
	open, guarded *http.Client // with and without link-local addresses
}

var _ plugins.Handler = (*Handler)(nil)

// New returns the http handler.
func New() *Handler {
	return &Handler{open: newClient(nil), guarded: newClient(refuseLinkLocal)}
}

// Schema implements plugins.Handler.
func (h *Handler) Schema() plugins.Schema { return schema.Schema() }

// body is the handler's block.
type body struct {
	URL             string            `json:"url"`
	Method          string            `json:"method"`
	Headers         map[string]string `json:"headers"`
	Body            string            `json:"body"`
	JSON            json.RawMessage   `json:"json"`
	ExpectStatus    []int             `json:"expect_status"`
	ExpectBody      string            `json:"expect_body"`
	FollowRedirects bool              `json:"follow_redirects"`
	AllowLinkLocal  bool              `json:"allow_link_local"`
	Outputs         map[string]string `json:"outputs"`
}

// Run implements plugins.Handler.
func (h *Handler) Run(ctx context.Context, job sdk.Job) (sdk.Outputs, error) {
	in := body{Method: http.MethodGet, FollowRedirects: true}
	if err := sdk.Decode(job.Body, &in); err != nil {
		return nil, err
	}
	req, err := newRequest(ctx, job, in)
	if err != nil {
		return nil, sdk.Permanent(err)
	}
	client := *h.guarded
	if in.AllowLinkLocal {
		client = *h.open
	}
	client.CheckRedirect = redirects(in)
	resp, err := client.Do(req)
	if err != nil {
		return nil, requestError(err)
	}
	defer func() { _ = resp.Body.Close() }()
	content, err := io.ReadAll(io.LimitReader(resp.Body, maxBody+1))
	cut := len(content) > maxBody
	content = content[:min(len(content), maxBody)]
	_, _ = fmt.Fprintf(job.Output.Stdout, "%s %s\n", resp.Proto, resp.Status)
	_, _ = job.Output.Stdout.Write(content)
	if cut {
		job.Output.Note(fmt.Sprintf("the response goes on after %d bytes, which is all that is read", maxBody))
	}
	if err != nil {
		return nil, sdk.Transient(fmt.Errorf("read response: %w", err))
	}
	if err := judge(in, resp, content); err != nil {
		return nil, err
	}
	return pick(in.Outputs, content)
}

func newRequest(ctx context.Context, job sdk.Job, in body) (*http.Request, error) {
	u, err := url.Parse(in.URL)
	switch {
	case err != nil:
		return nil, fmt.Errorf("url: %w", errors.Unwrap(err)) // without the URL, which may hold a secret
	case u.Scheme != "http" && u.Scheme != "https", u.Host == "":
		return nil, errors.New("url must be http:// or https:// with a host")
	case in.Body != "" && in.JSON != nil:
		return nil, errors.New("handler body: only one of body and json may be set")
	}
	content := in.Body
	if in.JSON != nil {
		content = string(in.JSON)
	}
	req, err := http.NewRequestWithContext(ctx, in.Method, in.URL, strings.NewReader(content))
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", "ax")
	if in.JSON != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if job.IdempotencyKey != "" {
		req.Header.Set("Idempotency-Key", job.IdempotencyKey)
	}
	for name, value := range in.Headers {
		if strings.ContainsAny(name+value, "\r\n\x00") {
			return nil, fmt.Errorf("header %q has a line break in it", name)
		}
		req.Header.Set(name, value)
		if http.CanonicalHeaderKey(name) == "Host" {
			req.Host = value
		}
	}
	return req, nil
}

// maxRedirects is how many redirects are followed.
const maxRedirects = 10

// redirects returns the policy of the client: what it must forget when it is
// sent to another host.
func redirects(in body) func(*http.Request, []*http.Request) error {
	return func(req *http.Request, via []*http.Request) error {
		switch {
		case !in.FollowRedirects:
			return http.ErrUseLastResponse
		case len(via) > maxRedirects:
			return sdk.Permanent(fmt.Errorf("more than %d redirects", maxRedirects))
		case req.URL.Scheme != "http" && req.URL.Scheme != "https":
			return sdk.Permanent(fmt.Errorf("redirect to scheme %q", req.URL.Scheme))
		}
		// Once away, always away: what comes back was chosen by a stranger.
		if !slices.ContainsFunc(append(via, req)[1:], func(r *http.Request) bool { return !sameSite(r.URL, via[0].URL) }) {
			return nil
		}
		for name := range in.Headers {
			req.Header.Del(name)
		}
		for _, name := range []string{"Authorization", "Cookie", "Referer", "Idempotency-Key"} {
			req.Header.Del(name)
		}
		return nil
	}
}

// sameSite reports whether to may see what was meant for from: the same host
// and port, and no less encrypted.
func sameSite(to, from *url.URL) bool {
	return to.Host == from.Host && (to.Scheme == from.Scheme || from.Scheme == "http")
}

// requestError classes what went wrong before there was a response, and keeps
// the URL, which may hold a secret, out of the text.
func requestError(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	var known *plugins.Error
	if errors.As(err, &known) {
		return err
	}
	return sdk.Transient(err)
}

// judge compares the response with what was expected.
func judge(in body, resp *http.Response, content []byte) error {
	expected := resp.StatusCode/100 == 2
	if len(in.ExpectStatus) > 0 {
		expected = slices.Contains(in.ExpectStatus, resp.StatusCode)
	}
	if !expected {
		e := &plugins.Error{Class: plugins.Failed, Err: fmt.Errorf("status %s", resp.Status), HTTPStatus: resp.StatusCode}
		switch resp.StatusCode {
		case http.StatusTooManyRequests, http.StatusServiceUnavailable:
			e.Class = plugins.Resource
		case http.StatusBadGateway, http.StatusGatewayTimeout:
			e.Class = plugins.Transient
		}
		return e
	}
	if in.ExpectBody != "" && !strings.Contains(string(content), in.ExpectBody) {
		return fmt.Errorf("response does not contain %q", in.ExpectBody)
	}
	return nil
}

// pick takes outputs from a JSON response by paths of names and indexes.
func pick(paths map[string]string, content []byte) (sdk.Outputs, error) {
	if len(paths) == 0 {
		return nil, nil
	}
	var doc any
	if err := json.Unmarshal(content, &doc); err != nil {
		return nil, fmt.Errorf("outputs: response is no JSON: %w", err)
	}
	outputs := sdk.Outputs{}
	for name, path := range paths {
		v, ok := walk(doc, strings.Split(path, "."))
		if !ok {
			return nil, fmt.Errorf("outputs: response has no %q", path)
		}
		outputs[name] = v
	}
	return outputs, nil
}

func walk(v any, path []string) (any, bool) {
	for _, step := range path {
		switch in := v.(type) {
		case map[string]any:
			next, ok := in[step]
			if !ok {
				return nil, false
			}
			v = next
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(in) {
				return nil, false
			}
			v = in[i]
		default:
			return nil, false
		}
	}
	return v, true
}
