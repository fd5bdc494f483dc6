package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/cron"
)

// shopBeat is how often the shop enqueues what has happened since.
const shopBeat = 250 * time.Millisecond

// The load comes in waves, and now and then a newsletter goes out: a sixth of all
// jobs, at once.
const (
	shopWave        = 90 * time.Second
	shopNewsletters = time.Minute
)

// shopLoad makes up what happens in a shop. The same seed makes the same jobs.
type shopLoad struct {
	dice  *rand.Rand
	rate  float64 // jobs a second on average, without those that come from them
	owed  float64 // what has not become a whole job yet
	beats int
	order int
}

func newShopLoad(rate float64, seed uint64) *shopLoad {
	return &shopLoad{dice: rand.New(rand.NewPCG(seed, 0)), rate: rate, order: 1000}
}

// next is what happens until the next beat.
func (l *shopLoad) next() (jobs []stint.NewJob) {
	l.beats++
	at := time.Duration(l.beats) * shopBeat
	wave := 1 + 0.6*math.Sin(2*math.Pi*at.Seconds()/shopWave.Seconds())
	for l.owed += l.rate * shopBeat.Seconds() * wave * 5 / 6; l.owed >= 1; l.owed-- {
		jobs = append(jobs, l.visit())
	}
	if at%shopNewsletters == shopNewsletters/4 {
		issue := int(at/shopNewsletters) + 1
		for i := range int(l.rate * shopNewsletters.Seconds() / 6) {
			args := map[string]any{"issue": issue, "to": fmt.Sprintf("reader%04d@example.com", i)}
			jobs = append(jobs, shopJob("demo.newsletter", args, stint.Correlation(fmt.Sprint("newsletter ", issue)), stint.Source(demoSource)))
		}
	}
	return jobs
}

// demoSource is where jobs of stint demo come from.
const demoSource = "stint demo"

var shopCustomers = []string{"ada", "alan", "barbara", "donald", "edsger", "frances", "grace", "ken", "leslie", "margaret", "niklaus", "radia"}

// visit is what one customer does.
func (l *shopLoad) visit() stint.NewJob {
	l.order++
	customer := shopCustomers[l.dice.IntN(len(shopCustomers))]
	from, urn := stint.Source(demoSource), stint.URN(fmt.Sprintf("urn:shop:order:%d", l.order))
	args := map[string]any{"order": l.order, "customer": customer + "@example.com"}
	switch at := l.dice.IntN(100); {
	case at < 40:
		args["total_cents"], args["items"] = 500+l.dice.IntN(20_000), 1+l.dice.IntN(5)
		if at < 8 {
			return shopJob("demo.order", args, from, urn, stint.Tag("vip"), stint.Priority(-20))
		}
		return shopJob("demo.order", args, from, urn)
	case at < 58:
		return shopJob("demo.thumbnail", map[string]any{"image": fmt.Sprintf("products/%d.jpg", l.order), "width": 320 << l.dice.IntN(3)}, from)
	case at < 73:
		return shopJob("demo.webhook", map[string]any{"event": "stock.changed", "product": l.order, "url": "https://partner.example.com/hook"}, from)
	case at < 85:
		args["template"] = "how did you like it"
		return shopJob("demo.mail", args, from, urn, stint.Tag("reminder"), stint.In(time.Duration(10+l.dice.IntN(170))*time.Second))
	case at < 96:
		args["template"] = "welcome"
		return shopJob("demo.mail", args, from, urn)
	case at < 99:
		return shopJob("demo.report", map[string]any{"report": "sales", "day": fmt.Sprintf("2026-11-%02d", 1+l.dice.IntN(30))}, from)
	}
	return demoJob("demo.build", `{"how": "error"}`, from)
}

// shopSchedules are those of the shop. They end by themselves, should nobody be
// there to remove them.
func shopSchedules(end time.Time) []stint.Schedule {
	schedule := func(name, when string, job stint.NewJob) stint.Schedule {
		return stint.Schedule{Name: name, Recurrence: cron.MustParse(when), Zone: "Europe/Berlin", Unique: true, NotAfter: end, Job: job}
	}
	return []stint.Schedule{
		schedule("demo.sales", "* * * * *", shopJob("demo.report", map[string]any{"report": "sales of the minute"})),
		schedule("demo.cleanup", "every 30s", shopJob("demo.cleanup", map[string]any{"older_than": "30d"})),
	}
}
