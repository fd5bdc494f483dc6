package gateway

import "github.com/stint-go/stint/engine"

// ReceiptOf writes a receipt.
func ReceiptOf(h engine.Hold) string { return receiptOf(h) }

// EndOf is what a handler would return for an ending.
func EndOf(x *Ending) ([]byte, error) { return x.end() }
