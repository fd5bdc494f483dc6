package postgres

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/stint-go/stint"
)

// tables looks at what vacuum has done with them, and how far back they go.
func (x *examination) tables(ctx context.Context, tx pgx.Tx) error {
	type table struct {
		Name       string
		Live, Dead int64
		Bytes      int64
		Vacuumed   *time.Time
		Options    []string
	}
	all, err := ask[table](ctx, tx, `
		select c.relname::text, pg_stat_get_live_tuples(c.oid), pg_stat_get_dead_tuples(c.oid), pg_total_relation_size(c.oid),
		       greatest(pg_stat_get_last_vacuum_time(c.oid), pg_stat_get_last_autovacuum_time(c.oid)), coalesce(c.reloptions, '{}')
		from pg_class c where c.relnamespace = $1::regnamespace and c.relkind = 'r' order by 1`, x.sql.schema)
	if err != nil {
		return err
	}
	sizes := map[string]any{}
	var total int64
	for _, t := range all {
		sizes[t.Name] = t.Bytes
		total += t.Bytes
		x.signs.Sizes = append(x.signs.Sizes, stint.Size{Name: t.Name, Bytes: t.Bytes, Rows: t.Live})
		if t.Dead >= x.normal.dead && t.Dead > 5*t.Live {
			vacuumed := "it was never vacuumed"
			if t.Vacuumed != nil {
				vacuumed = "it was last vacuumed at " + t.Vacuumed.UTC().Format(time.DateTime) + " UTC"
			}
			x.find(stint.Finding{
				Severity: stint.SeverityWarning, Code: "table_bloated", Subject: "table " + t.Name,
				Problem: fmt.Sprintf("%d dead rows beside %d live ones, %d MB; %s", t.Dead, t.Live, t.Bytes>>20, vacuumed),
				Remedy:  fmt.Sprintf("end what pins the horizon, if a finding tells of it; then: vacuum %s.%s", x.sql.schema, pgx.Identifier{t.Name}.Sanitize()),
				Figures: map[string]any{"dead": t.Dead, "live": t.Live, "size_bytes": t.Bytes, "vacuumed": t.Vacuumed},
			})
		}
		for _, option := range t.Options {
			if name, value, _ := strings.Cut(option, "="); name == "autovacuum_enabled" && (value == "false" || value == "off" || value == "0") {
				x.find(stint.Finding{
					Severity: stint.SeverityWarning, Code: "autovacuum_disabled", Subject: "table " + t.Name,
					Problem: "autovacuum passes over it: it is never cleaned up or analysed, nor frozen before the last moment",
					Remedy:  fmt.Sprintf("alter table %s.%s reset (autovacuum_enabled)", x.sql.schema, pgx.Identifier{t.Name}.Sanitize()),
				})
			}
		}
	}
	return x.oldest(ctx, tx, total, sizes)
}

// oldest tells of a history that nobody ever cut: it costs room, and nothing
// else. The oldest outcome is the one at the lowest position, nearly.
func (x *examination) oldest(ctx context.Context, tx pgx.Tx, total int64, sizes map[string]any) error {
	var (
		finished *time.Time
		now      time.Time
	)
	err := tx.QueryRow(ctx, x.sql.in(`select (select finished from stint.executions order by pos limit 1), clock_timestamp()`)).Scan(&finished, &now)
	if err != nil || finished == nil || now.Sub(*finished) < x.normal.history {
		return err
	}
	x.find(stint.Finding{
		Severity: stint.SeverityNote, Code: "history_long", Subject: "the history",
		Problem: fmt.Sprintf("it goes back %d days, to %s, and the tables take %d MB", int(now.Sub(*finished).Hours()/24), finished.UTC().Format(time.DateOnly), total>>20),
		Remedy:  "delete what nobody asks for any more: stint jobs delete --finished-before 30d",
		Figures: map[string]any{"oldest": finished.UTC(), "size_bytes": total, "sizes_bytes": sizes},
	})
	return nil
}

// identity sees whether the log is written in this database's transaction
// numbers. A copy is translated by the first program that opens it.
func (x *examination) identity(ctx context.Context, tx pgx.Tx) error {
	var moved bool
	err := tx.QueryRow(ctx, x.sql.in(`
		select m.system_identifier <> c.system_identifier or m.entries_oid <> 'stint.entries'::regclass::oid
		from stint.meta m, pg_control_system() c`)).Scan(&moved)
	if err != nil || !moved {
		return err
	}
	x.find(stint.Finding{
		Severity: stint.SeverityWarning, Code: "database_copied", Subject: "schema " + x.schema,
		Problem: "it is a copy of another database's, and its log is written in the transaction numbers of that one",
		Remedy:  "open it with a program that works or enqueues (stint jobs list does too): the first one translates the log",
	})
	return nil
}
