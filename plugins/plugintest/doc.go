// Package plugintest proves a handler against the contract, over real gRPC:
// Run is the conformance suite that every handler's tests call, and Start is
// an executor in the test's own process for tests of a handler's own ways.
package plugintest
