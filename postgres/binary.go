package postgres

import (
	"encoding/binary"
	"math"
	"time"

	"github.com/jackc/pgx/v5/pgtype"
)

// What follows is PostgreSQL's binary format for the few types of the hot
// path, which would otherwise spend much of their time in general conversions.

// param is a value in binary form with its type.
type param struct {
	oid   uint32
	value []byte
}

func int8s[T ~int64](v T) param { return param{pgtype.Int8OID, putInt8(nil, v)[4:]} }
func int4s(v int32) param       { return param{pgtype.Int4OID, putInt4(nil, v)[4:]} }
func int2s(v int16) param       { return param{pgtype.Int2OID, putInt2(nil, v)[4:]} }
func bools(v bool) param        { return param{pgtype.BoolOID, putBool(nil, v)[4:]} }

// timestamps is a timestamptz.
func timestamps(t time.Time) param {
	return param{pgtype.TimestamptzOID, int8s(t.UnixMicro() - epoch).value}
}

// texts is a text; an empty one is null.
func texts(v string) param {
	if v == "" {
		return param{oid: pgtype.TextOID}
	}
	return param{pgtype.TextOID, []byte(v)}
}

// Each put appends a value with its length before it, as arrays and COPY have it.

func putNull(b []byte) []byte { return binary.BigEndian.AppendUint32(b, math.MaxUint32) }

func putInt8[T ~int64](b []byte, v T) []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint32(b, 8), uint64(v))
}

func putInt4(b []byte, v int32) []byte {
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(b, 4), uint32(v))
}

func putInt2(b []byte, v int16) []byte {
	return binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint32(b, 2), uint16(v))
}

func putBool(b []byte, v bool) []byte {
	if v {
		return append(b, 0, 0, 0, 1, 1)
	}
	return append(b, 0, 0, 0, 1, 0)
}

func putText(b []byte, v string) []byte {
	return append(binary.BigEndian.AppendUint32(b, uint32(len(v))), v...)
}

// putJSON is a jsonb: its version, 1, and the text; an empty one is null.
func putJSON(b []byte, v []byte) []byte {
	if len(v) == 0 {
		return putNull(b)
	}
	return append(append(binary.BigEndian.AppendUint32(b, uint32(len(v)+1)), 1), v...)
}

// arrayOf is a one-dimensional array.
func arrayOf[T any](array, element uint32, values []T, put func(b []byte, v T) []byte) param {
	b := make([]byte, 0, 20+12*len(values))
	b = binary.BigEndian.AppendUint32(b, uint32(min(len(values), 1))) // dimensions
	b = binary.BigEndian.AppendUint32(b, 1)                           // there may be nulls
	b = binary.BigEndian.AppendUint32(b, element)
	if len(values) > 0 {
		b = binary.BigEndian.AppendUint32(b, uint32(len(values)))
		b = binary.BigEndian.AppendUint32(b, 1) // the first index
	}
	for _, v := range values {
		b = put(b, v)
	}
	return param{array, b}
}

func int8array[T ~int64](values []T) param {
	return arrayOf(pgtype.Int8ArrayOID, pgtype.Int8OID, values, putInt8[T])
}

func int4array(values []int32) param {
	return arrayOf(pgtype.Int4ArrayOID, pgtype.Int4OID, values, putInt4)
}

func float8array(values []float64) param {
	return arrayOf(pgtype.Float8ArrayOID, pgtype.Float8OID, values, func(b []byte, v float64) []byte { return putInt8(b, int64(math.Float64bits(v))) })
}

func int2array(values []int16) param {
	return arrayOf(pgtype.Int2ArrayOID, pgtype.Int2OID, values, putInt2)
}

func boolarray(values []bool) param {
	return arrayOf(pgtype.BoolArrayOID, pgtype.BoolOID, values, putBool)
}

// textarray and int8nulls are columns with nulls; a nil column is null as a whole.
func textarray(values []*string) param {
	return sparseArray(pgtype.TextArrayOID, pgtype.TextOID, values, putText)
}

func int8nulls(values []*int64) param {
	return sparseArray(pgtype.Int8ArrayOID, pgtype.Int8OID, values, putInt8)
}

func sparseArray[T any](array, element uint32, values []*T, put func(b []byte, v T) []byte) param {
	if values == nil {
		return param{oid: array}
	}
	return arrayOf(array, element, values, func(b []byte, v *T) []byte {
		if v == nil {
			return putNull(b)
		}
		return put(b, *v)
	})
}

// array calls each with the elements of a one-dimensional array, nil for null.
func array(b []byte, each func(element []byte)) {
	if len(b) < 20 {
		return
	}
	n := int(binary.BigEndian.Uint32(b[12:]))
	b = b[20:]
	for range n {
		size := int32(binary.BigEndian.Uint32(b))
		b = b[4:]
		if size < 0 {
			each(nil)
			continue
		}
		each(b[:size])
		b = b[size:]
	}
}

func int64of(b []byte) int64 {
	if b == nil {
		return 0
	}
	return int64(binary.BigEndian.Uint64(b))
}

func int32of(b []byte) int32 {
	if b == nil {
		return 0
	}
	return int32(binary.BigEndian.Uint32(b))
}

func int16of(b []byte) int16 {
	if b == nil {
		return 0
	}
	return int16(binary.BigEndian.Uint16(b))
}
