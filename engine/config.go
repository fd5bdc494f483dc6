package engine

import (
	"time"

	"github.com/stint-go/stint"
)

// Config says how an engine works. The zero value is right for a start: then it
// works on every queue with four slots for each processor.
type Config struct {
	// Client is what handlers and hooks enqueue with ([stint.ClientFrom]): by
	// default a plain one of the engine's store.
	Client *stint.Client

	// OnEvent is told everything that the engine does. It is called from
	// many goroutines and holds up the work while it runs. One that panics is
	// told so, as trouble, and does no other harm.
	OnEvent func(stint.Event)

	// What it works on, and how much at once.

	// Queues are the queues to work on. None, or "*", means every queue.
	Queues []string

	// Slots is how many jobs run at once, of whichever queue: by default four
	// for each processor, see [DefaultSlots].
	Slots int

	// QueueSlots gives queues slots of their own, in place of Slots: so many
	// jobs of a queue run at once, however many wait in the others. "*" stands
	// for all queues that are not named, which share its slots. Without it the
	// engine works on the named queues only.
	QueueSlots map[string]int

	// Who it is among the engines.

	// Instance names the engine in the roster and on every execution: by
	// default the host's name and a random suffix.
	Instance string

	// StrictInstance refuses to start while the roster has an engine of the
	// same name that holds unfinished jobs, with a [NameTakenError]: for those
	// who want to look at what a crash left behind before anything runs again.
	StrictInstance bool

	// Version is shown in the roster: the version of the program.
	Version string

	// How it lives, and how it ends.

	// TimeToLive is after how long a silent engine counts as dead. It beats
	// four times in it. By default 6 seconds; at least one.
	TimeToLive time.Duration

	// Grace is how long running jobs may go on after a stop before their
	// contexts are cancelled: by default 30 seconds.
	Grace time.Duration

	// MemoryLimit ends an engine whose process has grown: above so many bytes
	// of resident memory it takes no more jobs, lets those that run end, and
	// leaves the roster; Run returns a [MemoryError], and the program should
	// exit, to be started anew. By default there is none.
	MemoryLimit int64

	// How often it looks for work when nothing was heard.

	// Poll is how often the store is asked when nothing was heard: by
	// default every second. Where the store cannot call, it is the longest
	// wait, unless PollTo is set.
	Poll time.Duration

	// PollFrom and PollTo are for times when the store cannot call: so soon
	// behind the last job the engine asks for more, and each time that there
	// is none it waits twice as long, up to the second. By default they are
	// 20 and 500 milliseconds.
	PollFrom, PollTo time.Duration

	// What one engine does for all of them: it holds a lease for that.

	// LeaseFor is for how long this engine takes a lease; it renews it at a
	// third of that. When it dies, another engine takes over after that time,
	// or already when it is buried. By default 15 seconds; between one second
	// and a day.
	LeaseFor time.Duration

	// LeaseWait is how long an engine waits before it asks again for a lease
	// that another one holds, or up to a third less: by default a fifth of
	// LeaseFor. It asks after a third of that when it hears of something, which
	// may be that the lease was given back.
	LeaseWait time.Duration

	// LeaseWaitMax lets that wait grow: each time it is twice as long, up to
	// this. By default it does not grow.
	LeaseWaitMax time.Duration

	// Retention says how long jobs are kept after they ended: by default five
	// days. Of several engines it is that of the one that holds the lease for it,
	// so they are best given the same. One that keeps everything for ever leaves the
	// lease to others; while there are none, what jobs leave behind stays too, such
	// as idempotency keys and the histories of engines.
	Retention stint.Retention

	// What it counts.

	// MetricsEvery is how often the engine's figures are written, to the store
	// and to MetricsWriters, and once more when it stops. By default every 15
	// seconds; negative: never. [Engine.Metrics] tells them in any case.
	MetricsEvery time.Duration

	// MetricsWriters are given the engine's figures beside the store, or
	// instead of it where MetricsNotStored says so.
	MetricsWriters   []stint.MetricsWriter
	MetricsNotStored bool
}

// Defaults of [Config].
const (
	DefaultTimeToLive   = 6 * time.Second
	DefaultGrace        = 30 * time.Second
	DefaultPoll         = time.Second
	DefaultPollFrom     = 20 * time.Millisecond
	DefaultPollTo       = 500 * time.Millisecond
	DefaultLeaseFor     = 15 * time.Second
	DefaultMetricsEvery = 15 * time.Second
)
