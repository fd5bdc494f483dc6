package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/cron"
	"github.com/stint-go/stint/retry"
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
		return shopJob("demo.mail", args, from, urn, stint.Tag("reminder"), stint.Delay(time.Duration(10+l.dice.IntN(170))*time.Second))
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

// shopKind is a kind of the lively load: what the jobs of a shop would be, on a
// mixed day. What a job of it does follows from its kind, its arguments and, if a
// schedule made it, its number, so that it has the same fate wherever it runs.
type shopKind struct {
	name     string
	queue    string
	from, to time.Duration // that a job takes
	then     string        // the kind of the job that follows a success; empty for none
	troubles []shopTrouble
	defaults []stint.Option // beside those that all have
}

// shopTrouble is what goes wrong with some jobs of a kind.
type shopTrouble struct {
	percent int
	times   int // attempts that fail; 0 is all of them
	final   bool
	err     error // nil panics
	what    string
}

// The errors have classes, as those of programs do.
var (
	errGateway  = errors.New("the gateway did not answer in time")
	errDeclined = errors.New("the card was declined")
	errGreylist = errors.New("451 try again later")
	errMailbox  = errors.New("550 no such mailbox")
	errRefused  = errors.New("connection refused")
	errStock    = errors.New("out of stock")

	_ = retry.ErrorClass("gateway_timeout", errGateway)
	_ = retry.ErrorClass("card_declined", errDeclined)
	_ = retry.ErrorClass("greylisted", errGreylist)
	_ = retry.ErrorClass("unknown_mailbox", errMailbox)
	_ = retry.ErrorClass("connection_refused", errRefused)
	_ = retry.ErrorClass("out_of_stock", errStock)
)

var shopKinds = []shopKind{
	{name: "demo.order", queue: "demo.shop", from: 20 * time.Millisecond, to: 120 * time.Millisecond, then: "demo.charge",
		troubles: []shopTrouble{{percent: 2, final: true, err: errStock, what: "reserve the items"}}},
	{name: "demo.charge", queue: "demo.payments", from: 100 * time.Millisecond, to: 900 * time.Millisecond, then: "demo.invoice",
		troubles: []shopTrouble{{percent: 8, times: 2, err: errGateway, what: "charge the card"}, {percent: 4, final: true, err: errDeclined, what: "charge the card"}},
		defaults: []stint.Option{stint.Priority(-10)}},
	{name: "demo.invoice", queue: "demo.documents", from: 200 * time.Millisecond, to: 700 * time.Millisecond, then: "demo.mail"},
	{name: "demo.mail", queue: "demo.mail", from: 30 * time.Millisecond, to: 150 * time.Millisecond,
		troubles: []shopTrouble{{percent: 6, times: 1, err: errGreylist, what: "deliver"}, {percent: 2, final: true, err: errMailbox, what: "deliver"}}},
	{name: "demo.newsletter", queue: "demo.mail", from: 20 * time.Millisecond, to: 80 * time.Millisecond,
		defaults: []stint.Option{stint.Priority(50), stint.Tag("newsletter")}},
	{name: "demo.thumbnail", queue: "demo.media", from: 300 * time.Millisecond, to: 2500 * time.Millisecond,
		troubles: []shopTrouble{{percent: 3, what: "the image has no end"}}},
	{name: "demo.webhook", queue: "demo.webhooks", from: 50 * time.Millisecond, to: 400 * time.Millisecond,
		troubles: []shopTrouble{{percent: 10, times: 3, err: errRefused, what: "call the partner"}, {percent: 3, err: errRefused, what: "call the partner"}}},
	{name: "demo.report", queue: "demo.reports", from: 2 * time.Second, to: 9 * time.Second, // of which some take too long
		defaults: []stint.Option{stint.Timeout(8 * time.Second)}},
	{name: "demo.cleanup", queue: "demo.shop", from: 500 * time.Millisecond, to: time.Second},
}

// declaration is what is known of the kind: its failures are tried again soon,
// while somebody still looks on.
func (k shopKind) declaration() stint.KindInfo {
	all := []stint.Option{stint.Queue(k.queue), stint.Retry(retry.Exponential(4, 2*time.Second)), stint.Timeout(time.Minute), stint.Tag("demo")}
	return stint.NewKind[any](k.name, append(all, k.defaults...)...).Declaration()
}

// shopJob is a job of a kind of the shop.
func shopJob(kind string, args map[string]any, opts ...stint.Option) stint.NewJob {
	raw, _ := json.Marshal(args) // of texts and numbers
	for _, k := range shopKinds {
		if k.name == kind {
			return k.declaration().Job(raw, opts...)
		}
	}
	panic("there is no kind " + kind)
}

// shopResult is what a job of the shop leaves.
type shopResult struct {
	Took   demoTime `json:"took"`
	Handed string   `json:"handed_to,omitempty"`
	Next   stint.ID `json:"next,omitempty"`
}

// run performs a job.
func (k shopKind) run(ctx context.Context, job *stint.Job) (json.RawMessage, error) {
	var args map[string]any
	if err := json.Unmarshal(job.Args, &args); err != nil {
		return nil, stint.NoRetry(err)
	}
	dice, err := diceOf(job.Kind, args, job.Origin.Nth)
	if err != nil {
		return nil, stint.NoRetry(err)
	}
	takes := k.from + time.Duration(dice.Int64N(int64(k.to-k.from)))
	if err := demoPause(ctx, takes); err != nil {
		return nil, err
	}
	if err := k.trouble(dice, job.Attempt); err != nil {
		return nil, err
	}
	result := shopResult{Took: demoTime{takes.Round(time.Millisecond)}, Handed: k.then}
	if k.then != "" {
		// By a key, since a job that was lost with its engine comes here again.
		next := shopJob(k.then, args, stint.IdempotencyKey(fmt.Sprintf("%s:%d", k.then, job.ID)), stint.URN(job.URN))
		if result.Next, err = stint.ClientFrom(ctx).Enqueue(ctx, next); err != nil {
			return nil, err
		}
	}
	return json.Marshal(result)
}

// trouble is what goes wrong with an attempt, if something does.
func (k shopKind) trouble(dice *rand.Rand, attempt int) error {
	at := dice.IntN(100)
	for _, t := range k.troubles {
		if at -= t.percent; at >= 0 {
			continue
		}
		switch {
		case t.times > 0 && attempt > t.times:
			return nil
		case t.err == nil:
			panic(t.what)
		case t.final:
			return stint.NoRetry(fmt.Errorf("%s: %w", t.what, t.err))
		}
		return fmt.Errorf("%s: %w", t.what, t.err)
	}
	return nil
}

// diceOf are thrown alike for the same kind, arguments and number, however a store
// has written them.
func diceOf(kind string, args any, nth int64) (*rand.Rand, error) {
	text, err := json.Marshal(args)
	if err != nil {
		return nil, err
	}
	sum := fnv.New64a()
	fmt.Fprintf(sum, "%s %s %d", kind, text, nth)
	return rand.New(rand.NewPCG(sum.Sum64(), 0)), nil
}
