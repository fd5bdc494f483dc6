package postgres

import (
	"embed"
	"strings"

	"github.com/jackc/pgx/v5"
)

//go:embed schema/*.sql
var schemaFiles embed.FS

// statements are the texts sent to the server, for one schema. Each stands
// beside the method that runs it; here they are only put into the schema.
type statements struct {
	schema  string // quoted
	channel string
	rename  *strings.Replacer

	one, oneOfPolicy, oneOfMore                 string
	enqueue, schedule, keyed, unique            string
	reserve                                     string
	beat                                        string
	notify, notifyWork, notifyDue, passOn, ring string
	look, claim, taken, fetch                   string
	claimLanes, takenOfLanes                    string
	lookSince                                   string
	finish, finishLogs, record                  string
	promote                                     string
	due, fire                                   string
	nowFence, nowLock, nowKey, now              string
	gates, putPermits                           string
}

func (q *statements) load(schema string) {
	q.schema = pgx.Identifier{schema}.Sanitize()
	q.channel = schema
	q.rename = strings.NewReplacer(
		"stint.", q.schema+".",
		"create schema stint;", "create schema "+q.schema+";",
		"nspname = 'stint'", "nspname = '"+q.channel+"'",
		"pg_notify('stint'", "pg_notify('"+q.channel+"'",
	)
	for text, into := range map[string]*string{
		oneSQL: &q.one, oneOfPolicySQL: &q.oneOfPolicy, oneOfMoreSQL: &q.oneOfMore, enqueueSQL: &q.enqueue, scheduleSQL: &q.schedule, keyedSQL: &q.keyed, uniqueSQL: &q.unique, reserveSQL: &q.reserve, beatSQL: &q.beat, notifySQL: &q.notify, notifyWorkSQL: &q.notifyWork, notifyDueSQL: &q.notifyDue, passOnSQL: &q.passOn, ringSQL: &q.ring,
		lookSQL: &q.look, claimSQL: &q.claim, takenSQL: &q.taken, fetchSQL: &q.fetch,
		lookSinceSQL: &q.lookSince, claimLanesSQL: &q.claimLanes, takenOfLanesSQL: &q.takenOfLanes,
		finishSQL: &q.finish, finishLogsSQL: &q.finishLogs, recordSQL: &q.record, promoteSQL: &q.promote, dueSQL: &q.due, fireSQL: &q.fire,
		nowFenceSQL: &q.nowFence, nowLockSQL: &q.nowLock, nowKeySQL: &q.nowKey, nowSQL: &q.now,
		gatesSQL: &q.gates, putPermitsSQL: &q.putPermits,
	} {
		*into = q.in(text)
	}
}

// in puts a text that is written for the schema "stint" into this one.
func (q *statements) in(text string) string {
	if q.channel == "stint" {
		return text
	}
	return q.rename.Replace(text)
}
