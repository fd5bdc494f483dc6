package chart

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// greatest are maxima of scales, of all sizes.
func greatest(random *rand.Rand) float64 {
	switch random.IntN(6) {
	case 0:
		return 0
	case 1:
		return float64(random.IntN(100))
	case 2:
		return math.Round(math.Exp(random.Float64()*42)) / 10
	case 3:
		return largest
	case 4:
		return math.NaN()
	}
	return drawn(math.Ldexp(random.Float64(), random.IntN(2100)-1050))
}

func TestTicksAscendFromNothingAndCoverWhatIsThere(t *testing.T) {
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	for range 20000 {
		u, most, n := Unit(random.IntN(4)), greatest(random), 2+random.IntN(9)
		got := ticks(u, most, n)
		steps := map[float64]bool{}
		for i := range got[1:] {
			steps[math.Round((got[i+1]-got[i])/got[1]*1e6)] = true
		}
		switch last := got[len(got)-1]; {
		case got[0] != 0 || !slices.IsSorted(got) || len(got) < 2 || len(got) > n:
		case last < most || math.IsInf(last, 0) || math.IsNaN(last):
		case most > 1e-8 && len(got) > 2 && got[len(got)-2] >= most: // one too many
		case len(steps) != 1 || slices.Contains(slices.Compact(slices.Clone(got[1:])), 0):
		case u == Count && got[1] != math.Trunc(got[1]):
		case u == Duration && got[1] < 1:
		default:
			continue
		}
		t.Fatalf("seed %d: unit %d up to %v in at most %d: %v", seed, u, most, n, got)
	}
}

func TestTicksAreRound(t *testing.T) {
	for _, c := range []struct {
		unit Unit
		most float64
		want []string
	}{
		{Count, 0, []string{"0", "1"}},
		{Count, 3, []string{"0", "1", "2", "3"}},
		{Count, 1234, []string{"0", "500", "1k", "1.5k"}},
		{Count, 1_040_322, []string{"0", "500k", "1M", "1.5M"}},
		{Count, 7.2, []string{"0", "2", "4", "6", "8"}},
		{Duration, 0, []string{"0", "500ms", "1s"}},
		{Duration, float64(90 * time.Millisecond), []string{"0", "50ms", "100ms"}},
		{Duration, float64(80 * time.Second), []string{"0", "30s", "1m", "1m30s"}},
		{Duration, float64(50 * time.Hour), []string{"0", "1d", "2d", "3d"}},
	} {
		var got []string
		for _, v := range ticks(c.unit, c.most, 5) {
			got = append(got, c.unit.short(v))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("unit %d up to %v: %q, want %q", c.unit, c.most, got, c.want)
		}
	}
}

func TestMarksAreAtRoundTimesWithinTheirSpan(t *testing.T) {
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	for range 20000 {
		from := time.Unix(random.Int64N(4e9), random.Int64N(1e9))
		length := time.Duration(min(math.Exp(random.Float64()*43), float64(century)))
		s, n := span{from, from.Add(length)}, 3+random.IntN(6)
		marks := s.marks(n)
		if len(marks) < 1 || len(marks) > n {
			t.Fatalf("seed %d: %v has %d marks, want 1 to %d", seed, s, len(marks), n)
		}
		for i, m := range marks {
			if m.at.Before(s.from) || m.at.After(s.to) || i > 0 && !m.at.After(marks[i-1].at) || m.label == "" {
				t.Fatalf("seed %d: %v has the marks %v", seed, s, marks)
			}
		}
	}
}

func TestMarksSayWhatPeopleLookFor(t *testing.T) {
	noon := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		from   time.Time
		length time.Duration
		want   []string
	}{
		{noon.Add(3 * time.Minute), time.Hour, []string{"12:10", "12:20", "12:30", "12:40", "12:50", "13:00"}},
		{noon.Add(30 * time.Minute), day, []string{"16:00", "20:00", "23 Nov", "04:00", "08:00", "12:00"}},
		{noon, 7 * day, []string{"23 Nov", "24 Nov", "25 Nov", "26 Nov", "27 Nov", "28 Nov", "29 Nov"}},
		{noon, 30 * day, []string{"26 Nov", "1 Dec", "6 Dec", "11 Dec", "16 Dec", "21 Dec"}},
		{noon, 10 * time.Second, []string{"12:00:00", "12:00:02", "12:00:04", "12:00:06", "12:00:08", "12:00:10"}},
		{noon, 12 * time.Millisecond, []string{"12:00:00.000", "12:00:00.002", "12:00:00.004", "12:00:00.006", "12:00:00.008", "12:00:00.010", "12:00:00.012"}},
		{noon, 0, nil},
		{time.Time{}, math.MaxInt64, nil}, // somebody forgot an instant
	} {
		var got []string
		for _, m := range (span{c.from, c.from.Add(c.length)}).marks(7) {
			got = append(got, m.label)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%v from %v: %q, want %q", c.length, c.from, got, c.want)
		}
	}
}
