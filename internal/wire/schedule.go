// Package wire has shapes of JSON that several packages write.
package wire

import (
	"encoding/json"
	"time"
)

// Schedule is a schedule as people and programs in other languages see it.
type Schedule struct {
	Name       string          `json:"name"`
	Recurrence string          `json:"recurrence"`
	Words      string          `json:"words,omitempty"`
	Zone       string          `json:"zone"`
	Job        json.RawMessage `json:"job"`
	Unique     bool            `json:"unique"`
	Missed     string          `json:"missed"`
	NotBefore  time.Time       `json:"not_before,omitzero"`
	NotAfter   time.Time       `json:"not_after,omitzero"`
}
