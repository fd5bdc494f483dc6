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

func int8s(v int64) param {
	return param{pgtype.Int8OID, binary.BigEndian.AppendUint64(nil, uint64(v))}
}

func int4s(v int32) param {
	return param{pgtype.Int4OID, binary.BigEndian.AppendUint32(nil, uint32(v))}
}

func int2s(v int16) param {
	return param{pgtype.Int2OID, binary.BigEndian.AppendUint16(nil, uint16(v))}
}

// timestamps is a timestamptz.
func timestamps(t time.Time) param {
	return param{pgtype.TimestamptzOID, binary.BigEndian.AppendUint64(nil, uint64(t.UnixMicro()-epoch))}
}

// texts is a text; an empty one is null.
func texts(v string) param {
	if v == "" {
		return param{oid: pgtype.TextOID}
	}
	return param{pgtype.TextOID, []byte(v)}
}

func bools(v bool) param {
	if v {
		return param{pgtype.BoolOID, []byte{1}}
	}
	return param{pgtype.BoolOID, []byte{0}}
}

// arrayHead begins a one-dimensional array; flags says whether nulls may occur.
func arrayHead(n int, element uint32, nulls bool, size int) []byte {
	b := make([]byte, 0, 20+n*(4+size))
	if n == 0 {
		b = binary.BigEndian.AppendUint32(b, 0)
	} else {
		b = binary.BigEndian.AppendUint32(b, 1)
	}
	flag := uint32(0)
	if nulls {
		flag = 1
	}
	b = binary.BigEndian.AppendUint32(b, flag)
	b = binary.BigEndian.AppendUint32(b, element)
	if n > 0 {
		b = binary.BigEndian.AppendUint32(b, uint32(n))
		b = binary.BigEndian.AppendUint32(b, 1)
	}
	return b
}

func int8array[T ~int64](values []T) param {
	b := arrayHead(len(values), pgtype.Int8OID, false, 8)
	for _, v := range values {
		b = binary.BigEndian.AppendUint32(b, 8)
		b = binary.BigEndian.AppendUint64(b, uint64(v))
	}
	return param{pgtype.Int8ArrayOID, b}
}

func int4array(values []int32) param {
	b := arrayHead(len(values), pgtype.Int4OID, false, 4)
	for _, v := range values {
		b = binary.BigEndian.AppendUint32(b, 4)
		b = binary.BigEndian.AppendUint32(b, uint32(v))
	}
	return param{pgtype.Int4ArrayOID, b}
}

func int2array(values []int16) param {
	b := arrayHead(len(values), pgtype.Int2OID, false, 2)
	for _, v := range values {
		b = binary.BigEndian.AppendUint32(b, 2)
		b = binary.BigEndian.AppendUint16(b, uint16(v))
	}
	return param{pgtype.Int2ArrayOID, b}
}

func boolarray(values []bool) param {
	b := arrayHead(len(values), pgtype.BoolOID, false, 1)
	for _, v := range values {
		b = binary.BigEndian.AppendUint32(b, 1)
		if v {
			b = append(b, 1)
		} else {
			b = append(b, 0)
		}
	}
	return param{pgtype.BoolArrayOID, b}
}

// textarray is a column of texts with nulls; a nil column is null as a whole.
func textarray(values []*string) param {
	if values == nil {
		return param{pgtype.TextArrayOID, nil}
	}
	b := arrayHead(len(values), pgtype.TextOID, true, 8)
	for _, v := range values {
		if v == nil {
			b = binary.BigEndian.AppendUint32(b, math.MaxUint32)
			continue
		}
		b = binary.BigEndian.AppendUint32(b, uint32(len(*v)))
		b = append(b, *v...)
	}
	return param{pgtype.TextArrayOID, b}
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

// int8nulls is a column of numbers with nulls; a nil column is null as a whole.
func int8nulls(values []*int64) param {
	if values == nil {
		return param{pgtype.Int8ArrayOID, nil}
	}
	b := arrayHead(len(values), pgtype.Int8OID, true, 8)
	for _, v := range values {
		if v == nil {
			b = binary.BigEndian.AppendUint32(b, math.MaxUint32)
			continue
		}
		b = binary.BigEndian.AppendUint32(b, 8)
		b = binary.BigEndian.AppendUint64(b, uint64(*v))
	}
	return param{pgtype.Int8ArrayOID, b}
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
