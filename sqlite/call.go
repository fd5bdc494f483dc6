package sqlite

import (
	"encoding/json"
	"fmt"

	"github.com/stint-go/stint"
)

const (
	calledSQL    = `select job from stint_steps indexed by stint_steps_called where question ->> 'job' = ?1 and result is null and question is not null`
	tellSQL      = `update stint_steps set ended = ?2, result = ?3 where question ->> 'job' = ?1 and result is null and question is not null`
	reasonOfSQL  = `select reason, result from stint_executions where (pos = ?1 and job is null or job = ?1) and final = 1`
	failureOfSQL = `
	select error from stint_executions where (pos = ?1 and job is null or job = ?1) and outcome <> 1 and error is not null order by pos desc limit 1`

	// What a job has called that is cancelled goes with it.
	markCalledSQL = `
	insert into stint_cancellations (job, at, why)
	select e.pos, k.at, ` + whyWith + `
	from stint_cancellations k cross join stint_entries e on e.flow = k.job
	where k.down_to is null and not exists (select 1 from stint_flows f where f.flow = k.job)
	  and not exists (select 1 from stint_cancellations m where m.job = e.pos) and %s is null`
	calledMarkedSQL = `
	update stint_cancellations set down_to = 0
	where down_to is null and not exists (select 1 from stint_flows f where f.flow = job) and exists (select 1 from stint_entries e where e.flow = job)`
)

var markCallsSQL = fmt.Sprintf(markCalledSQL, fmt.Sprintf(outcomeOf, "e.pos"))

// tellCallers records how a job ended as the steps that called it, and wakes those jobs. One that has not ended, or that no
// step called, is passed over.
func (c *conn) tellCallers(job, now int64) error {
	callers, err := allRows(c, firstNumber[int64], calledSQL, job)
	if err != nil || len(callers) == 0 {
		return err
	}
	outcome, err := oneRow(c, firstNumber[stint.Outcome], endOfSQL, job)
	if err != nil || outcome == 0 {
		return err
	}
	end := stint.CalledJob{Job: stint.ID(job), State: stint.Failed, Reason: "it was deleted"}
	err = c.query(reasonOfSQL, []any{job}, func(q *stmt) error {
		end.Reason, end.Result = q.words(0), q.json(1)
		return nil
	})
	switch outcome {
	case stint.OutcomeCompleted:
		end.State, end.Reason = stint.Completed, ""
	case stint.OutcomeCancelled, stint.OutcomeSkipped:
		end.State = stint.Cancelled
	}
	if err == nil && end.State != stint.Completed {
		end.Result = nil
		err = c.query(failureOfSQL, []any{job}, func(q *stmt) error {
			end.Failure = &stint.Failure{}
			return json.Unmarshal(q.json(0), end.Failure)
		})
		if end.Failure != nil {
			end.Failure.Stack = ""
		}
	}
	if err != nil {
		return err
	}
	text, err := json.Marshal(end)
	if err == nil {
		_, err = c.exec(tellSQL, job, now, string(text))
	}
	for _, caller := range callers {
		if err == nil {
			_, err = c.exec(wakeSQL, caller, now)
		}
	}
	return err
}

// cancelCalls marks what jobs have called that are cancelled.
func (c *conn) cancelCalls() error {
	_, err := c.exec(markCallsSQL)
	if err == nil {
		_, err = c.exec(calledMarkedSQL)
	}
	return err
}
