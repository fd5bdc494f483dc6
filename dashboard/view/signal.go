package view

import (
	"context"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/words"
	"github.com/stint-go/stint/store"
)

// Signal is a signal that was sent to a job.
type Signal struct {
	stint.SentSignal
	Bytes int64 `json:"bytes,omitempty" doc:"How large the value is that is left out for its size"`
}

// SignalsOf reads the signals of a job, with their whole values.
func SignalsOf(ctx context.Context, st store.SignalReader, id stint.ID) ([]Signal, error) {
	sent, err := st.Signals(ctx, id)
	if err != nil || len(sent) == 0 {
		return nil, err
	}
	all := make([]Signal, len(sent))
	for i, s := range sent {
		all[i].SentSignal = s
	}
	return all, nil
}

// shortSignalsOf reads the signals of a job, without values that are large.
func shortSignalsOf(ctx context.Context, st store.SignalReader, id stint.ID) ([]Signal, error) {
	all, err := SignalsOf(ctx, st, id)
	for i := range all {
		if n := len(all[i].Value); n > MostResult {
			all[i].Value, all[i].Bytes = nil, int64(n)
		}
	}
	return all, err
}

// AwaitsInWords says which signals and answers a blocked job awaits. It is empty if nothing is known of that.
func AwaitsInWords(j stint.JobInfo) string {
	if j.State != stint.Blocked {
		return ""
	}
	return words.Awaits(j.Awaits, j.Asks)
}
