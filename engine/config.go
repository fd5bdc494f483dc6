package engine

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"fmt"
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

	// Slots is how many jobs run at once: by default four for each processor.
	Slots int

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
	// default every second where the store can call, and otherwise between
	// 20 and 500 milliseconds, the longer the longer nothing came.
	Poll time.Duration

	// Version is shown in the roster: the version of the program.
	Version string

	// Client is what handlers and hooks enqueue with ([stint.ClientFrom]): by
	// default a plain one of the engine's store.
	Client *stint.Client

	// OnEvent is told everything that the engine does. It is called from
	// many goroutines and holds up the work while it runs.
	OnEvent func(stint.Event)
}

// Defaults of [Config].
const (
	DefaultGrace      = 30 * time.Second
	DefaultTimeToLive = 6 * time.Second
	DefaultPoll       = time.Second
)

func (c Config) fill() (Config, error) {
	for _, q := range c.Queues {
		if q != "*" {
			if err := stint.CheckName("queues", q); err != nil {
				return c, err
			}
		}
	}
	if slices.Contains(c.Queues, "*") {
		c.Queues = nil
	}
	c.Slots = cmp.Or(c.Slots, 4*runtime.GOMAXPROCS(0))
	c.Grace = cmp.Or(c.Grace, DefaultGrace)
	c.TimeToLive = cmp.Or(c.TimeToLive, DefaultTimeToLive)
	switch {
	case c.Slots < 0 || c.Slots > maxSlots:
		return c, &stint.InvalidError{Field: "slots", Problem: fmt.Sprintf("%d is not between 1 and %d", c.Slots, maxSlots)}
	case c.Grace < 0:
		return c, &stint.InvalidError{Field: "grace", Problem: "it is negative"}
	case c.TimeToLive < time.Second:
		return c, &stint.InvalidError{Field: "time to live", Problem: "it is shorter than a second"}
	case c.Poll < 0:
		return c, &stint.InvalidError{Field: "poll", Problem: "it is negative"}
	}
	if c.Instance == "" {
		c.Instance = hostname() + "-" + suffix()
	} else if err := stint.CheckName("instance", c.Instance); err != nil {
		return c, err
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
