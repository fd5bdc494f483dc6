package gateway

import "github.com/stint-go/stint/engine"

// ReceiptOf writes a receipt.
func ReceiptOf(h engine.Hold) string { return receiptOf(h) }
