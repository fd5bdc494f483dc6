package engine

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"time"

	"github.com/stint-go/stint/internal/valid"
)

// fill sets defaults and rejects invalid settings.
func (c Config) fill() (Config, error) {
	p := &c
	err := cmp.Or(p.fillQueues(), p.fillIdentity(), p.fillLife(), p.fillPolls(), p.fillLeases(), p.Retention.Check(), p.fillMetrics())
	return c, err
}

// refuse returns an error about a setting if it is bad.
func refuse(bad bool, field, format string, args ...any) error {
	if bad {
		return valid.Invalid(field, format, args...)
	}
	return nil
}

func (c *Config) fillQueues() error {
	for _, q := range c.Queues {
		if q != "*" {
			if err := valid.Name("queues", q); err != nil {
				return err
			}
		}
	}
	if err := c.fillSlots(); err != nil {
		return err
	}
	if slices.Contains(c.Queues, "*") {
		c.Queues = nil
	}
	c.Slots = cmp.Or(c.Slots, DefaultSlots())
	return cmp.Or(
		refuse(c.Slots < 0 || c.Slots > maxSlots, "slots", "%d is not between 1 and %d", c.Slots, maxSlots),
		refuse(c.MaxSlots < 0 || c.MaxSlots > maxSlots, "slots", "at most %d is not between 1 and %d", c.MaxSlots, maxSlots),
		refuse(c.MaxSlots > 0 && c.MaxSlots < c.Slots, "slots", "from %d to %d is nothing", c.Slots, c.MaxSlots),
		refuse(c.MaxSlots > 0 && c.Beside != nil, "slots", "an engine beside another one does not find their number by itself"),
	)
}

// DefaultSlots is how many jobs an engine runs at once if Config.Slots is zero: four for each
// processor that Go may use.
func DefaultSlots() int { return 4 * runtime.GOMAXPROCS(0) }

// DefaultMaxSlots is the usual [Config.MaxSlots]: a hundred for each processor that Go may use.
func DefaultMaxSlots() int { return min(maxSlots, 100*runtime.GOMAXPROCS(0)) }

// fillSlots works out how many slots there are in all, and for which queues.
func (c *Config) fillSlots() error {
	if len(c.QueueSlots) == 0 {
		return nil
	}
	if c.Slots != 0 {
		return valid.Invalid("slots", "they are a number for all queues or one for each, not both")
	}
	if c.MaxSlots != 0 {
		return valid.Invalid("slots", "the engine finds their number by itself for all queues together, not for each")
	}
	c.QueueSlots = maps.Clone(c.QueueSlots)
	var named []string
	for _, queue := range slices.Sorted(maps.Keys(c.QueueSlots)) {
		n := c.QueueSlots[queue]
		if n < 1 || n > maxSlots {
			return valid.Invalid("slots", "%d of the queue %s is not between 1 and %d", n, queue, maxSlots)
		}
		if queue != "*" {
			if err := valid.Name("slots", queue); err != nil {
				return err
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
			return valid.Invalid("slots", "there are none for the queue %s", queue)
		}
	}
	for _, queue := range named {
		if !every && !slices.Contains(c.Queues, queue) {
			return valid.Invalid("slots", "the queue %s is not one to work on", queue)
		}
	}
	return nil
}

// maxSlots is the greatest slot number that a store can record.
const maxSlots = 32_000

// fillIdentity gives the engine a name.
func (c *Config) fillIdentity() error {
	if c.Instance != "" {
		return valid.Name("instance", c.Instance)
	}
	c.Instance = fmt.Sprintf("%s-%06x", hostname(), random63()&0xffffff)
	return nil
}

func hostname() string {
	name, err := os.Hostname()
	if err != nil || valid.Name("host", name) != nil {
		return "unknown"
	}
	return name
}

func (c *Config) fillLife() error {
	c.TimeToLive = cmp.Or(c.TimeToLive, DefaultTimeToLive)
	if c.MaxOutage = max(0, cmp.Or(c.MaxOutage, DefaultMaxOutage)); c.MaxOutage <= c.TimeToLive*3/4 {
		c.MaxOutage = 0
	}
	c.Grace = cmp.Or(c.Grace, DefaultGrace)
	return cmp.Or(
		refuse(c.TimeToLive < time.Second, "time to live", "it is shorter than a second"),
		refuse(c.Grace < 0, "grace", "it is negative"),
		refuse(c.MemoryLimit < 0, "memory limit", "it is negative"),
	)
}

// fillPolls works out the waits between polls. A bound that was set moves the default of the other
// one out of its way.
func (c *Config) fillPolls() error {
	for _, d := range []time.Duration{c.Poll, c.PollFrom, c.PollTo} {
		err := cmp.Or(refuse(d < 0, "poll", "it is negative"), refuse(d > 0 && d < time.Millisecond, "poll", "%v is shorter than a millisecond", d))
		if err != nil {
			return err
		}
	}
	if c.PollTo == 0 {
		c.PollTo = max(cmp.Or(c.Poll, DefaultPollTo), c.PollFrom)
	}
	if c.PollFrom == 0 {
		c.PollFrom = min(DefaultPollFrom, c.PollTo)
	}
	c.Poll = cmp.Or(c.Poll, DefaultPoll)
	return refuse(c.PollFrom > c.PollTo, "poll", "from %v to %v is nothing", c.PollFrom, c.PollTo)
}

// fillLeases works out how leases are asked for.
func (c *Config) fillLeases() error {
	c.LeaseFor = cmp.Or(c.LeaseFor, DefaultLeaseFor)
	leaseFor := refuse(c.LeaseFor < time.Second || c.LeaseFor > 24*time.Hour, "lease", "it is not between a second and a day")
	c.LeaseWait = cmp.Or(c.LeaseWait, c.LeaseFor/5)
	c.LeaseWaitMax = cmp.Or(c.LeaseWaitMax, c.LeaseWait)
	return cmp.Or(
		leaseFor,
		refuse(c.LeaseWait < time.Millisecond, "lease wait", "%v is shorter than a millisecond", c.LeaseWait),
		refuse(c.LeaseWaitMax < c.LeaseWait, "lease wait", "from %v to %v is nothing", c.LeaseWait, c.LeaseWaitMax),
	)
}

func (c *Config) fillMetrics() error {
	c.MetricsEvery = cmp.Or(c.MetricsEvery, DefaultMetricsEvery)
	return refuse(c.MetricsEvery > 0 && c.MetricsEvery < time.Millisecond, "metrics every", "it is shorter than a millisecond")
}
