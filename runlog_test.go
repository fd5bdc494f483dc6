package stint_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stint-go/stint"
)

// talking is a run and the context of its handler.
func talking(t *testing.T) (*stint.Run, context.Context) {
	run := &stint.Run{Job: &stint.Job{ID: 7}}
	return run, run.Context(t.Context())
}

func texts(l stint.RunLog) (all []string) {
	for _, line := range l.Lines {
		all = append(all, fmt.Sprint(line.N, " ", line.Level, " ", line.Text))
	}
	return all
}

func expectLines(t *testing.T, l stint.RunLog, want ...string) {
	t.Helper()
	if got := texts(l); !slices.Equal(got, want) {
		t.Errorf("it logged %q, want %q", got, want)
	}
}

func TestTheLastProgressCounts(t *testing.T) {
	for _, tt := range []struct {
		fraction float64
		text     string
		want     stint.Progress
	}{
		{0.25, "page 40", stint.Progress{Fraction: 0.25, Text: "page 40"}},
		{1, "", stint.Progress{Fraction: 1}},
		{-0.1, "less", stint.Progress{Text: "less"}},
		{1.5, "more", stint.Progress{Fraction: 1, Text: "more"}},
		{math.NaN(), "none", stint.Progress{Text: "none"}},
		{math.Inf(1), "", stint.Progress{Fraction: 1}},
		{0.5, strings.Repeat("x", 80), stint.Progress{Fraction: 0.5, Text: strings.Repeat("x", 64)}},
		{0.5, strings.Repeat("ü", 40), stint.Progress{Fraction: 0.5, Text: strings.Repeat("ü", 32)}},
		{0.5, strings.Repeat("x", 63) + "☃", stint.Progress{Fraction: 0.5, Text: strings.Repeat("x", 63)}},
		{0.5, "a\x00b\xff", stint.Progress{Fraction: 0.5, Text: "a\uFFFDb\uFFFD"}},
	} {
		run, ctx := talking(t)
		if l := run.Log(); !l.Empty() {
			t.Fatalf("before it says something there is %+v", l)
		}
		before := time.Now()
		stint.SetProgress(ctx, 0.1, "first")
		stint.SetProgress(ctx, tt.fraction, tt.text)
		got := run.Log().Progress
		if got == nil || got.Fraction != tt.want.Fraction || got.Text != tt.want.Text || got.N != 2 || got.At.Before(before) {
			t.Errorf("%v %q is kept as %+v, want %+v", tt.fraction, tt.text, got, tt.want)
		}
	}
	stint.SetProgress(t.Context(), 0.5, "by nobody")
}

func TestLinesAreAsSlogWritesThem(t *testing.T) {
	run, ctx := talking(t)
	log := stint.Logger(ctx)
	log.Info("plain")
	log.Info("with", "n", 40, "text", "a b", "time", "noon", "level", "high", "msg", "other", slog.Group("g", "k", 1))
	log.With("a", 1).WithGroup("g").With("b", 2).Warn("grouped", "c", 3)
	log.Debug("too little")
	log.Log(ctx, slog.LevelError+1, "")
	log.Info("two\r\nlines\n")
	log.Info("\x1b[31mred\x00\xff")
	log.Info(strings.Repeat("ü", stint.MaxLine))
	log.With("k", "a\nb").Info("quoted")
	l := run.Log()
	long := l.Lines[7].Text
	expectLines(t, l, "1 INFO plain", `2 INFO with n=40 text="a b" time=noon level=high msg=other g.k=1`, "3 WARN grouped a=1 g.b=2 g.c=3",
		"4 ERROR+1 ", "5 INFO two", "6 INFO lines", "7 INFO \x1b[31mred\uFFFD\uFFFD", "8 INFO "+long, `9 INFO quoted k="a\nb"`)
	if len(long) > stint.MaxLine || len(long) < stint.MaxLine-8 || !utf8.ValidString(long) || !strings.HasSuffix(long, "[cut]") {
		t.Errorf("a line of %d bytes is kept as one of %d: …%q", 2*stint.MaxLine, len(long), long[len(long)-10:])
	}
}

// What passes by the context is in both logs, and what does not, only in the program's.
func TestALogHandlerPassesRecordsOn(t *testing.T) {
	var program strings.Builder
	quiet := slog.New(stint.LogHandler(slog.NewTextHandler(&program, &slog.HandlerOptions{Level: slog.LevelWarn, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}})))
	run, ctx := talking(t)
	quiet.InfoContext(ctx, "the job's")
	quiet.With("a", 1).WithGroup("g").WarnContext(ctx, "both", "b", 2)
	quiet.Info("nobody's")
	quiet.Warn("the program's")
	quiet.DebugContext(ctx, "nobody's")
	expectLines(t, run.Log(), "1 INFO the job's", "2 WARN both a=1 g.b=2")
	if got, want := program.String(), "level=WARN msg=both a=1 g.b=2\nlevel=WARN msg=\"the program's\"\n"; got != want {
		t.Errorf("the program logged %q, want %q", got, want)
	}
	if quiet.Enabled(t.Context(), slog.LevelInfo) || !quiet.Enabled(ctx, slog.LevelInfo) {
		t.Error("a level that nobody wants is enabled, or one that the job wants is not")
	}
	if stint.Logger(t.Context()) != slog.Default() {
		t.Error("outside of handlers it is not the default logger")
	}
}

func TestARunKeepsTheFirstAndTheLastOfWhatItSays(t *testing.T) {
	run, ctx := talking(t)
	text := strings.Repeat("x", 100-stint.LineCost)
	first, last := stint.MaxLogHead/100, stint.MaxLogTail/100
	n := 0
	say := func(lines int) {
		for range lines {
			stint.Logger(ctx).Info(text)
		}
		n += lines
	}
	numbers := func(l stint.RunLog) string {
		var parts []string
		for i, line := range l.Lines {
			if i == 0 || line.N != l.Lines[i-1].N+1 {
				parts = append(parts, fmt.Sprint(line.N, "-"))
			}
			if i == len(l.Lines)-1 || l.Lines[i+1].N != line.N+1 {
				parts[len(parts)-1] += fmt.Sprint(line.N)
			}
			if line.Text != text {
				t.Errorf("line %d is %q", line.N, line.Text)
			}
		}
		return fmt.Sprint(strings.Join(parts, " "), ", without ", l.From, "-", l.To)
	}
	expect := func(l stint.RunLog, want string) {
		t.Helper()
		if got := numbers(l); got != want {
			t.Errorf("after %d lines there are %s, want %s", n, got, want)
		}
		if l.Bytes != 100*len(l.Lines) {
			t.Errorf("%d lines count %d", len(l.Lines), l.Bytes)
		}
	}
	say(10)
	expect(run.Log(), "1-10, without 0-0")
	expect(run.Log(), "1-10, without 0-0") // nobody took it
	part := run.Log()
	part.Lines = part.Lines[:4]
	run.TakenLog(part)
	expect(run.Log(), "5-10, without 0-0")
	say(first + last - 10)
	expect(run.Log(), fmt.Sprintf("5-%d, without 0-0", first+last))
	run.TakenLog(run.Log())
	if l := run.Log(); !l.Empty() {
		t.Errorf("after all was taken there is %+v", l)
	}
	say(5)
	l := run.Log()
	expect(l, fmt.Sprintf("%d-%d, without %d-%d", first+last+1, first+last+5, first+1, first+5))
	say(3) // while that is on its way
	run.TakenLog(l)
	expect(run.Log(), fmt.Sprintf("%d-%d, without %d-%d", first+last+6, first+last+8, first+6, first+8))
	run.TakenLog(l) // as late as it may be
	say(2000)
	expect(run.Log(), fmt.Sprintf("%d-%d, without %d-%d", n-last+1, n, first+6, n-last))
}

func TestWhatIsSaidAfterARunIsDiscarded(t *testing.T) {
	run, ctx := talking(t)
	log := stint.Logger(ctx)
	log.Info("in time")
	_, _ = run.Settle(nil, errors.New("no"))
	log.Info("too late")
	stint.SetProgress(ctx, 1, "too late")
	expectLines(t, run.Log(), "1 INFO in time")
	if run.Log().Progress != nil {
		t.Error("there is a progress")
	}
}

func TestManySayWhatTheyLikeAtOnce(t *testing.T) {
	run, ctx := talking(t)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for i := range 200 {
				stint.Logger(ctx).Info("a line", "i", i)
				stint.SetProgress(ctx, float64(i)/200, "")
				if i%50 == 0 {
					run.TakenLog(run.Log())
				}
			}
		})
	}
	wg.Wait()
	run.TakenLog(run.Log())
	if l := run.Log(); !l.Empty() {
		t.Errorf("there is %+v", l)
	}
	stint.Logger(ctx).Info("last")
	if l := run.Log(); l.Lines[0].N != 1601 {
		t.Errorf("the last line is %d", l.Lines[0].N)
	}
}
