// Package clients runs the clients of other languages against real gateways: their own tests, and jobs while
// workers and gateways are killed. It needs their interpreters, python3 and node; without one its tests are skipped and
// say so.
package clients
