// Package stint is the language of a task engine: durable background jobs on
// the database that a team already has. PostgreSQL is the store for any number
// of machines (package postgres), SQLite the embedded one (package sqlite).
//
// # Ten nouns
//
//	Job        one piece of work: a kind, JSON arguments, a queue, a priority,
//	           a time not to run before, and how to retry
//	Kind       the name of a type of job; all that producers and handlers share
//	Handler    the Go function that performs the jobs of a kind
//	Queue      a named group of jobs that engines choose to work on
//	Lane       one queue at one priority: the unit that claims proceed along
//	Entry      one appearance of a job in the log of ready work
//	Claim      a batch of entries of one lane, taken by one engine
//	Attempt    one run of a job's handler; its record also acknowledges the entry
//	Engine     a running worker process; the roster lists them (package engine)
//	Schedule   a job that recurs: a name, a recurrence (package cron), a time zone
//
// # The life of a job
//
//	           enqueue (now)                                  ┌── completed / failed / cancelled
//	producer ───────────────▶  log ──claim──▶ engine ──finish─┤
//	    │                       ▲                             ├── retry, snooze ──▶ waiting
//	    │ enqueue (later)       │ promote (due)               └── returned unstarted ──▶ log
//	    └───────────────────▶ waiting
//	 schedules ─── each occurrence, when it is due ─▶ log
//
// Two writes change what becomes of a job: finish, which appends the record of an attempt
// and at most one next entry, and promote, which moves jobs that are due from waiting to
// the log. One pure function decides what follows from the end of an attempt:
// [store.Conclude].
//
// # Using it
//
// Declare a kind once, where producers and handlers both see it:
//
//	type Invoice struct{ Customer int64 }
//
//	var SendInvoice = stint.NewKind[Invoice]("send_invoice", stint.Timeout(time.Minute))
//
// A producer needs a store and a client:
//
//	store, err := sqlite.Open(ctx, "jobs.db")
//	client := stint.NewClient(store)
//	id, err := SendInvoice.Enqueue(ctx, client, Invoice{42}, stint.Delay(time.Hour))
//	err = SendInvoice.Await(ctx, client, id) // nil when it completed; of a ResultKind with its result
//
// A client also shows, cancels and retries jobs: [Client.Job], [Client.Cancel],
// [Client.Retry].
//
// A worker needs handlers and an engine:
//
//	mux := stint.NewMux()
//	stint.Handle(mux, SendInvoice, func(ctx context.Context, job *stint.Job, in Invoice) error { … })
//	worker, err := engine.New(store, mux, engine.Config{Slots: 50})
//	err = worker.Run(ctx)
//
// # Around a handler
//
// Middleware and hooks are set for the whole [Mux], or for one kind: for its
// [Registration], which [Handle], [HandleResult], [HandleNew] and [Mux.Add] return.
//
//	enqueue ─▶ EnqueueMiddleware ─▶ store ─▶ … ─▶ Middleware ─▶ handler ─▶ recorded ─▶ Hooks
//	           may change, refuse                 is part of the attempt    true by then
//
// A handler's context carries a client ([ClientFrom]) and the job ([JobFrom]).
// [Job.Previous] returns the run before this one; [Job.Last] reports whether this
// attempt is the last. What [SetResult] and [SetError] set counts instead of
// what the handler returns. [HandleNew] makes a fresh handler for each run, and a
// [Group] is a kind with several operations.
//
// # What is promised
//
// A job that was enqueued ends in exactly one final state, whatever process is killed
// in between. No outcome is recorded twice: an engine that was declared dead
// can record nothing more. A handler may run again after a crash, a lost
// connection or a retry, so it should be able to see that its work is already done.
//
// # Around it
//
// Package store has what a store promises, package report the statistics and the doctor,
// and package event the events of engines. Client, engine and command line share nothing
// but the store, so one process and a fleet of machines are the same program.
package stint
