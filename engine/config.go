package engine

import (
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/event"
	"github.com/stint-go/stint/report"
	"github.com/stint-go/stint/store"
)

// Config says how an engine works. The zero value works: every queue, with four slots for each
// processor.
type Config struct {
	// Client is the client that handlers and hooks get from [stint.ClientFrom]. The default is a
	// plain client of the engine's store.
	Client *stint.Client

	// OnEvent receives an event for everything that the engine does. It is called from many
	// goroutines, and the work waits while it runs. A panic in it is reported as an event of the
	// type trouble and has no other effect.
	OnEvent func(event.Event)

	// What it works on, and how much at once.

	// Queues are the queues to work on. None, or "*", means every queue.
	Queues []string

	// Slots is how many jobs run at once, from all queues together. The default is four for each
	// processor, see [DefaultSlots].
	Slots int

	// MaxSlots, if it is not 0, has the engine find by itself how many slots it has use for: Slots at least,
	// and this many at most; [DefaultMaxSlots] is usual. It has more while jobs wait and more slots get through
	// them faster, as with handlers that mostly wait for others, and goes back where they do not. It never
	// interrupts a job for that. [Engine.Metrics] says how many slots there are now, and why. It cannot be
	// given with QueueSlots or Beside.
	MaxSlots int

	// QueueSlots gives queues slots of their own, in place of Slots: this many jobs of a queue run
	// at once, whatever waits in the other queues. "*" stands for all queues that are not named;
	// they share its slots. Without "*" the engine works on the named queues only.
	QueueSlots map[string]int

	// Who it is among the engines.

	// Instance names the engine in the roster and in every attempt. The default is the host's name
	// and a random suffix.
	Instance string

	// StrictInstance makes Run fail with a [NameTakenError] while the roster has an engine of the
	// same name that holds unfinished jobs. Use it to look at what a crash left before anything
	// runs again.
	StrictInstance bool

	// Version is the version of the program, shown in the roster.
	Version string

	// ClaimsNothing has the engine leave all jobs to others: it does what engines do for each other, and is a host
	// for those beside it.
	ClaimsNothing bool

	// Beside is another engine of the same store, in this process. Then this one takes jobs and performs
	// them, and does nothing else: it leaves to the other what engines do for each other, such as burials
	// and promotions, and learns from it what is new. So a process may have a thousand of them, each with a
	// place of its own in the roster. It sends heartbeats only when [Engine.Beat] is called, four in the
	// time to live being enough, and Run returns [store.ErrBuried] when it has lost its place. MaxOutage,
	// the settings of leases, Retention and schedules have no effect.
	Beside *Engine

	// Present, of an engine beside another one, reports whether the one it works for is there to take jobs.
	// While it is not, the engine takes and begins none, and announces nothing. Nil means always.
	Present func() bool

	// AtOnce, of an engine beside another one, bounds how many jobs it has at once, beside Slots: those that
	// run and those that are about to. It is asked whenever the engine may have room for more, by several
	// goroutines, and must not wait for the engine. When the answer grows, [Engine.LookAgain] has the engine
	// notice. Nil means that Slots alone bound it. With QueueSlots it has no effect.
	AtOnce func() int

	// QueueOrder, of an engine beside another one, names queues in the order in which it takes jobs from them,
	// whatever their priorities. Those that it does not name come last. It is called at each look. Nil means that
	// priorities alone decide.
	QueueOrder func() []string

	// Host and PID, of an engine beside another one, are those of the process that it works for, as the
	// roster shows them. The default is this process.
	Host string
	PID  int

	// How it lives, and how it ends.

	// TimeToLive is how long an engine may be silent before others count it as dead. It sends four
	// beats in this time, at least two of them while it has no job. The default is 6 seconds, the minimum 1 second.
	TimeToLive time.Duration

	// MaxOutage is how long the database may be away before the engine cancels what it runs: while
	// the server is down, restarted or failed over, or a network drops everything. The default is
	// 30 seconds. An engine whose process died is replaced after its time to live all the same; one
	// whose machine lost its power, or was cut off without a word, after four thirds of this.
	//
	// Three quarters of the time to live are possible in any case. Negative values, and all that
	// are not longer, stand for that; through a pooler, where an outage looks like a death, it is
	// what holds. On SQLite there is no limit.
	MaxOutage time.Duration

	// Grace is how long running jobs may go on after a stop before their contexts are cancelled.
	// The default is 30 seconds.
	Grace time.Duration

	// MemoryLimit is in bytes of the process's resident memory. Above it the engine takes no more
	// jobs, lets running ones end, and leaves the roster; Run returns a [MemoryError], and the
	// program should exit and be started again. Zero means no limit.
	MemoryLimit int64

	// How often it looks for work when nothing was heard.

	// Poll is how often the engine asks the store for work when it got no notification. The default
	// is 1 second. Where more than three engines work on the same queues, each waits longer in
	// proportion, up to 33 times in the mean, since the others ask in between. Where the store cannot
	// notify, Poll is the longest wait, unless PollTo is set.
	Poll time.Duration

	// PollFrom and PollTo apply while the store cannot notify. The engine asks for more work this
	// soon after the last job, and doubles the wait each time that it finds none, from PollFrom up
	// to PollTo. The defaults are 20 and 500 milliseconds.
	PollFrom, PollTo time.Duration

	// What one engine does for all of them: it holds a lease for that.

	// LeaseFor is how long this engine takes a lease for; it renews the lease after a third of
	// that. If it dies, another engine takes over after that time, or as soon as it is buried. The
	// default is 15 seconds; allowed are 1 second to 24 hours.
	LeaseFor time.Duration

	// LeaseWait is how long an engine waits before it asks again for a lease that another engine
	// holds; each wait is shorter by up to a third, at random. After a notification it asks after a
	// third of LeaseWait, because the lease may have been given back. Where more than three engines
	// work on the same queues, each waits longer, as with Poll. The default is a fifth of LeaseFor.
	LeaseWait time.Duration

	// LeaseWaitMax lets that wait grow: it doubles each time, up to this. By default it does not
	// grow.
	LeaseWaitMax time.Duration

	// Retention says how long jobs are kept after they end. The default is five days. In a fleet,
	// the setting of the engine that holds the lease applies, so give all engines the same. An
	// engine that keeps everything for ever leaves the lease to others. While no engine deletes,
	// what jobs leave behind stays too, such as idempotency keys and the histories of engines.
	Retention store.Retention

	// What it counts.

	// MetricsEvery is how often the engine's metrics are written to the store and to
	// MetricsWriters; they are written once more at the stop. The default is 15 seconds; negative
	// means never. [Engine.Metrics] works in any case.
	MetricsEvery time.Duration

	// MetricsWriters receive the engine's metrics in addition to the store, or instead of it if
	// MetricsNotStored is set.
	MetricsWriters   []report.MetricsWriter
	MetricsNotStored bool
}

// Defaults of [Config].
const (
	DefaultTimeToLive   = 6 * time.Second
	DefaultMaxOutage    = 30 * time.Second
	DefaultGrace        = 30 * time.Second
	DefaultPoll         = time.Second
	DefaultPollFrom     = 20 * time.Millisecond
	DefaultPollTo       = 500 * time.Millisecond
	DefaultLeaseFor     = 15 * time.Second
	DefaultMetricsEvery = 15 * time.Second
)
