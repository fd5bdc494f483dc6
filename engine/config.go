package engine

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"time"

	"github.com/stint-go/stint"
)

// Config says how an engine works. The zero value is right for a start.
type Config struct {
	// Queues are the queues to work on. None, or "*", means every queue.
	Queues []string

	// Slots is how many jobs run at once, of whichever queue: by default four
	// for each processor.
	Slots int

	// QueueSlots gives queues slots of their own, in place of Slots: so many
	// jobs of a queue run at once, however many wait in the others. "*" stands
	// for all queues that are not named, which share its slots. Without it the
	// engine works on the named queues only.
	QueueSlots map[string]int

	// Instance names the engine in the roster and on every execution: by
	// default the host's name and a random suffix.
	Instance string

	// StrictInstance refuses to start while the roster has an engine of the
	// same name that holds unfinished jobs, with a [NameTakenError]: for those
	// who want to look at what a crash left behind before anything runs again.
	StrictInstance bool

	// Grace is how long running jobs may go on after a stop before their
	// contexts are cancelled: by default 30 seconds.
	Grace time.Duration

	// TimeToLive is after how long a silent engine counts as dead. It beats
	// four times in it. By default 6 seconds; at least one.
	TimeToLive time.Duration

	// Poll is how often the store is asked when nothing was heard: by
	// default every second. Where the store cannot call, it is the longest
	// wait, unless PollTo is set.
	Poll time.Duration

	// PollFrom and PollTo are for times when the store cannot call: so soon
	// behind the last job the engine asks for more, and each time that there
	// is none it waits twice as long, up to the second. By default they are
	// 20 and 500 milliseconds.
	PollFrom, PollTo time.Duration

	// Retention says how long jobs are kept after they ended: by default five
	// days. Of several engines it is that of the one that holds the lease for it,
	// so they are best given the same.
	Retention stint.Retention

	// LeaseFor is for how long this engine takes what one engine does for all
	// of them, such as the retention of old jobs; it renews the lease at a third
	// of it. When it dies, another engine takes over after that time, or
	// already when it is buried. By default 15 seconds; between one second and
	// a day.
	LeaseFor time.Duration

	// LeaseWait is how long an engine waits before it asks again for a lease
	// that another one holds, or up to a third less: by default a fifth of
	// LeaseFor. It asks after a third of that when it hears of something, which
	// may be that the lease was given back.
	LeaseWait time.Duration

	// LeaseWaitMax lets that wait grow: each time it is twice as long, up to
	// this. By default it does not grow.
	LeaseWaitMax time.Duration

	// MemoryLimit ends an engine whose process has grown: above so many bytes
	// of resident memory it takes no more jobs, lets those that run end, and
	// leaves the roster; Run returns a [MemoryError], and the program should
	// exit, to be started anew. By default there is none.
	MemoryLimit int64

	// MetricsEvery is how often the engine's figures are written, to the store
	// and to MetricsWriters, and once more when it stops. By default every 15
	// seconds; negative: never. [Engine.Metrics] tells them in any case.
	MetricsEvery time.Duration

	// MetricsWriters are given the engine's figures beside the store, or
	// instead of it where MetricsNotStored says so.
	MetricsWriters   []stint.MetricsWriter
	MetricsNotStored bool

	// Version is shown in the roster: the version of the program.
	Version string

	// Client is what handlers and hooks enqueue with ([stint.ClientFrom]): by
	// default a plain one of the engine's store.
	Client *stint.Client

	// OnEvent is told everything that the engine does. It is called from
	// many goroutines and holds up the work while it runs. One that panics is
	// told so, as trouble, and does no other harm.
	OnEvent func(stint.Event)
}

// Defaults of [Config].
const (
	DefaultGrace      = 30 * time.Second
	DefaultTimeToLive = 6 * time.Second
	DefaultPoll       = time.Second
	DefaultPollFrom   = 20 * time.Millisecond
	DefaultPollTo     = 500 * time.Millisecond
	DefaultLeaseFor   = 15 * time.Second

	DefaultMetricsEvery = 15 * time.Second
)

func (c Config) fill() (Config, error) {
	for _, q := range c.Queues {
		if q != "*" {
			if err := stint.CheckName("queues", q); err != nil {
				return c, err
			}
		}
	}
	c, err := c.fillSlots()
	if err != nil {
		return c, err
	}
	if slices.Contains(c.Queues, "*") {
		c.Queues = nil
	}
	c.Slots = cmp.Or(c.Slots, 4*runtime.GOMAXPROCS(0))
	c.Grace = cmp.Or(c.Grace, DefaultGrace)
	c.TimeToLive = cmp.Or(c.TimeToLive, DefaultTimeToLive)
	c.MetricsEvery = cmp.Or(c.MetricsEvery, DefaultMetricsEvery)
	switch {
	case c.Slots < 0 || c.Slots > maxSlots:
		return c, &stint.InvalidError{Field: "slots", Problem: fmt.Sprintf("%d is not between 1 and %d", c.Slots, maxSlots)}
	case c.Grace < 0:
		return c, &stint.InvalidError{Field: "grace", Problem: "it is negative"}
	case c.MemoryLimit < 0:
		return c, &stint.InvalidError{Field: "memory limit", Problem: "it is negative"}
	case c.TimeToLive < time.Second:
		return c, &stint.InvalidError{Field: "time to live", Problem: "it is shorter than a second"}
	case c.MetricsEvery > 0 && c.MetricsEvery < time.Millisecond:
		return c, &stint.InvalidError{Field: "metrics every", Problem: "it is shorter than a millisecond"}
	}
	if err := c.fillPolls(); err != nil {
		return c, err
	}
	if err := c.fillLeases(); err != nil {
		return c, err
	}
	if err := c.Retention.Check(); err != nil {
		return c, err
	}
	if c.Instance == "" {
		c.Instance = hostname() + "-" + suffix()
	} else if err := stint.CheckName("instance", c.Instance); err != nil {
		return c, err
	}
	return c, nil
}

// fillPolls works out how long an engine waits that hears nothing. A bound that
// was set moves the default of another one out of its way.
func (c *Config) fillPolls() error {
	if c.Poll < 0 || c.PollFrom < 0 || c.PollTo < 0 {
		return stint.Invalid("poll", "it is negative")
	}
	for _, d := range []time.Duration{c.Poll, c.PollFrom, c.PollTo} {
		if d > 0 && d < time.Millisecond {
			return stint.Invalid("poll", "%v is shorter than a millisecond", d)
		}
	}
	if c.PollTo == 0 {
		c.PollTo = max(cmp.Or(c.Poll, DefaultPollTo), c.PollFrom)
	}
	if c.PollFrom == 0 {
		c.PollFrom = min(DefaultPollFrom, c.PollTo)
	}
	c.Poll = cmp.Or(c.Poll, DefaultPoll)
	if c.PollFrom > c.PollTo {
		return stint.Invalid("poll", "from %v to %v is nothing", c.PollFrom, c.PollTo)
	}
	return nil
}

// fillLeases works out how leases are asked for.
func (c *Config) fillLeases() error {
	c.LeaseFor = cmp.Or(c.LeaseFor, DefaultLeaseFor)
	if c.LeaseFor < time.Second || c.LeaseFor > 24*time.Hour {
		return stint.Invalid("lease", "it is not between a second and a day")
	}
	c.LeaseWait = cmp.Or(c.LeaseWait, c.LeaseFor/5)
	c.LeaseWaitMax = cmp.Or(c.LeaseWaitMax, c.LeaseWait)
	switch {
	case c.LeaseWait < time.Millisecond:
		return stint.Invalid("lease wait", "%v is shorter than a millisecond", c.LeaseWait)
	case c.LeaseWaitMax < c.LeaseWait:
		return stint.Invalid("lease wait", "from %v to %v is nothing", c.LeaseWait, c.LeaseWaitMax)
	}
	return nil
}

// fillSlots works out how many slots there are in all, and for which queues.
func (c Config) fillSlots() (Config, error) {
	if len(c.QueueSlots) == 0 {
		return c, nil
	}
	if c.Slots != 0 {
		return c, stint.Invalid("slots", "they are a number for all queues or one for each, not both")
	}
	c.QueueSlots = maps.Clone(c.QueueSlots)
	var named []string
	for _, queue := range slices.Sorted(maps.Keys(c.QueueSlots)) {
		n := c.QueueSlots[queue]
		if n < 1 || n > maxSlots {
			return c, stint.Invalid("slots", "%d of the queue %s is not between 1 and %d", n, queue, maxSlots)
		}
		if queue != "*" {
			if err := stint.CheckName("slots", queue); err != nil {
				return c, err
			}
			named = append(named, queue)
		}
		c.Slots += n
	}
	_, rest := c.QueueSlots["*"]
	if c.Queues == nil && !rest {
		c.Queues = named
	}
	every := len(c.Queues) == 0 || slices.Contains(c.Queues, "*")
	for _, queue := range c.Queues {
		if !rest && c.QueueSlots[queue] == 0 {
			return c, stint.Invalid("slots", "there are none for the queue %s", queue)
		}
	}
	for _, queue := range named {
		if !every && !slices.Contains(c.Queues, queue) {
			return c, stint.Invalid("slots", "the queue %s is not one to work on", queue)
		}
	}
	return c, nil
}

// maxSlots is what an execution has room to name.
const maxSlots = 32_000

func hostname() string {
	name, err := os.Hostname()
	if err != nil || stint.CheckName("host", name) != nil {
		return "unknown"
	}
	return name
}

func suffix() string {
	var b [3]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}
