package stint

import "time"

// Metrics are what one engine has counted since it was made. They are for
// people and for monitoring: what became of a job is told by its executions
// alone.
type Metrics struct {
	Instance string    `json:"instance"`
	Engine   Token     `json:"engine,string"` // of the current or last time in the roster; 0 before the first
	Since    time.Time `json:"since"`         // when the counting began
	At       time.Time `json:"at"`            // when this was read

	Listener ListenerMetrics `json:"listener"`
	Claimer  ClaimerMetrics  `json:"claimer"`
	Workers  WorkerMetrics   `json:"workers"`
	Finisher FinisherMetrics `json:"finisher"`
	Prefetch PrefetchMetrics `json:"prefetch"`
	Writer   WriterMetrics   `json:"writer"`

	Kinds map[string]Durations `json:"kinds,omitempty"` // how long attempts took, by kind
}

// ListenerMetrics are about hearing of news.
type ListenerMetrics struct {
	Notifications int64 `json:"notifications"` // how often the store rang
	Reconnects    int64 `json:"reconnects"`    // how often listening began again
	Timeouts      int64 `json:"timeouts"`      // how often the engine looked because nothing was heard
}

// ClaimerMetrics are about taking work.
type ClaimerMetrics struct {
	Claims    int64     `json:"claims"`     // how often entries were asked for
	Empty     int64     `json:"empty"`      // and none were there
	Claimed   int64     `json:"claimed"`    // entries that were taken
	SlotWaits int64     `json:"slot_waits"` // how often there was no room to take more
	Returned  int64     `json:"returned"`   // entries that were handed back unstarted
	Took      Durations `json:"took"`       // a claim
}

// WorkerMetrics are about attempts.
type WorkerMetrics struct {
	Running   int64         `json:"running"`   // now
	Run       int64         `json:"run"`       // attempts that ended
	Succeeded int64         `json:"succeeded"` // of these
	Failed    int64         `json:"failed"`
	Cancelled int64         `json:"cancelled"`
	Working   time.Duration `json:"working"` // of all attempts together
}

// FinisherMetrics are about recording how attempts ended.
type FinisherMetrics struct {
	Outcomes int64     `json:"outcomes"` // that were recorded
	Flushes  int64     `json:"flushes"`  // batches that these were recorded in
	Retries  int64     `json:"retries"`  // flushes that had to be tried again
	Took     Durations `json:"took"`     // a flush
}

// PrefetchMetrics are about what waits in the engine for a slot.
type PrefetchMetrics struct {
	Max   int64 `json:"max"`   // the most that ever waited
	Min   int64 `json:"min"`   // the least that waited while there was more to take
	Full  int64 `json:"full"`  // how often no more could wait
	Empty int64 `json:"empty"` // how often a slot found nothing
}

// WriterMetrics are about storing these figures.
type WriterMetrics struct {
	Reports int64     `json:"reports"` // figures that were to be stored
	Writes  int64     `json:"writes"`  // and were
	Retries int64     `json:"retries"`
	Took    Durations `json:"took"` // a write
}

// Durations sum up how long something took that happened many times. The zero
// value is of something that never happened.
type Durations struct {
	Count   int64         `json:"count"`
	Last    time.Duration `json:"last"`
	Fastest time.Duration `json:"fastest"`
	Longest time.Duration `json:"longest"`
	Total   time.Duration `json:"total"`
}

// Mean is the total by the count, or 0.
func (d Durations) Mean() time.Duration {
	if d.Count == 0 {
		return 0
	}
	return d.Total / time.Duration(d.Count)
}

// Add counts one more.
func (d *Durations) Add(took time.Duration) {
	if d.Count == 0 || took < d.Fastest {
		d.Fastest = took
	}
	d.Count++
	d.Last, d.Longest, d.Total = took, max(d.Longest, took), d.Total+took
}
