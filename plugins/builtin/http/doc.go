// Package http is the handler that sends one HTTP request and judges the
// response.
//
// The response goes to the attempt's log: status line and the first MiB of the
// body. Statuses 429 and 503 are errors of class resource; 502, 504 and
// everything that goes wrong below HTTP are transient; any other status that
// is not expected, and a body without the expected text, are failed.
//
// Link-local addresses, among them the metadata services of clouds, are
// refused when a connection is made, whatever name led there; so a name that
// changes its address between check and use gains nothing. A redirect to
// another host loses every header of the configuration and every credential
// in the URL: any of them may be a secret.
package http
