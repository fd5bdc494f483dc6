package gateway

import (
	"time"

	"github.com/stint-go/stint/engine"
)

// ReceiptOf writes a receipt.
func ReceiptOf(h engine.Hold) string { return receiptOf(h) }

// EndOf is what a handler would return for an ending.
func EndOf(x *Ending) ([]byte, error) { return x.end() }

// SetMost sets how many workers the gateway takes.
func (g *Gateway) SetMost(n int) { g.most = n }

// SetMissedFor sets how long ago a job must have been handed out to count as never received, for workers that join
// after it.
func (g *Gateway) SetMissedFor(d time.Duration) { g.missedFor = d }
