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
//	Execution  the record of one attempt; also the acknowledgement of its entry
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
// Everything that changes a job's fate goes through two writes: finish, which
// appends an execution and at most one successor, and promote, which moves
// what is due from waiting to the log. What follows from the end of an attempt
// is decided by one pure function, [store.Conclude].
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
// Everything below is said of the whole [Mux] or of one kind's [Registration],
// which [Handle], [HandleResult], [HandleNew] and [Mux.Add] return.
//
//	enqueue ─▶ EnqueueMiddleware ─▶ store ─▶ … ─▶ Middleware ─▶ handler ─▶ recorded ─▶ Hooks
//	           may change, refuse                 is part of the attempt    true by then
//
// A handler's context leads to a client ([ClientFrom]), to the job ([JobFrom])
// and to the run before this one ([Job.Previous]); [Job.Last] says whether there
// can be another. What is set by [SetResult] and [SetError] counts instead of
// what is returned. [HandleNew] makes a fresh handler for each run, and a
// [Group] is a kind with several operations.
//
// # What is promised
//
// A job that was enqueued ends in exactly one final state, whatever is killed
// in between. No outcome is accepted twice: an engine that was declared dead
// can record nothing more. A handler may be run again after a crash, a lost
// connection or a retry, so it should be able to tell that its work is done
// already.
//
// # Around it
//
// What a store promises is in package store, what people ask in package report,
// what engines tell in package event. Client, engine and command line meet in the
// store and nowhere else, which is what makes one process and a fleet of machines the
// same program.
package stint
