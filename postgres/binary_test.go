package postgres

import (
	"bytes"
	"reflect"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgtype"
)

// FuzzArrays holds what is written and read in PostgreSQL's binary format against
// the driver's own conversions.
func FuzzArrays(f *testing.F) {
	f.Add("", int64(0), uint8(0))
	f.Add("a\x00b\xff", int64(-1), uint8(3))
	f.Add("ü", int64(1)<<62, uint8(20))
	m := pgtype.NewMap()
	f.Fuzz(func(t *testing.T, text string, number int64, n uint8) {
		var words []*string
		var numbers []*int64
		var plain []int64
		var fours []int32
		var twos []int16
		var bools []bool
		for i := range int64(n % 9) {
			v, s := number+i, text[:min(len(text), int(i)*3)]
			words, numbers = append(words, &s), append(numbers, &v)
			if i%3 == 2 {
				words[i], numbers[i] = nil, nil
			}
			plain, fours, twos, bools = append(plain, v), append(fours, int32(v)), append(twos, int16(v)), append(bools, v&1 == 0)
		}
		agrees(t, m, textarray(words), words)
		agrees(t, m, int8nulls(numbers), numbers)
		if len(plain) > 0 { // nothing at all is an array of nothing, and to the driver null
			agrees(t, m, int8array(plain), append([]int64{}, plain...))
			agrees(t, m, int4array(fours), append([]int32{}, fours...))
			agrees(t, m, int2array(twos), append([]int16{}, twos...))
			agrees(t, m, boolarray(bools), append([]bool{}, bools...))
		}
		agrees(t, m, int8s(number), number)
		agrees(t, m, int4s(int32(number)), int32(number))
		agrees(t, m, int2s(int16(number)), int16(number))
		var back []*int64
		array(int8nulls(numbers).value, func(e []byte) {
			if e == nil {
				back = append(back, nil)
				return
			}
			v := int64of(e)
			back = append(back, &v)
		})
		if !reflect.DeepEqual(back, numbers) {
			t.Errorf("%v is read as %v", numbers, back)
		}
		if us := number % (1 << 57); us > -210_866_803_200_000_000 { // the driver's first day
			at := time.UnixMicro(us).UTC()
			agrees(t, m, timestamps(at), at)
			if got := timeOf(timestamps(at).value); !got.Equal(at) {
				t.Errorf("%v is read as %v", at, got)
			}
		}
	})
}

// agrees makes sure that the driver writes a value as it was written here.
func agrees[T any](t *testing.T, m *pgtype.Map, got param, value T) {
	t.Helper()
	want, err := m.Encode(got.oid, pgtype.BinaryFormatCode, value, nil)
	if err != nil {
		t.Fatalf("the driver does not write %v: %v", value, err)
	}
	if !bytes.Equal(got.value, want) && !(len(want) == 0 && got.value == nil) {
		// Whether there are nulls is said for the whole array: here always, by the
		// driver when there are some. To the server it is the same.
		if len(want) > 8 && len(got.value) == len(want) && bytes.Equal(append(bytes.Clone(want[:4]), want[8:]...), append(bytes.Clone(got.value[:4]), got.value[8:]...)) {
			return
		}
		t.Errorf("%v is written as %x, by the driver as %x", value, got.value, want)
	}
}
