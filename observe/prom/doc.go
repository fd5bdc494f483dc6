// Package prom counts what engines tell, for Prometheus.
//
//	events := prom.NewEvents()
//	prometheus.MustRegister(events)
//	engine.New(store, mux, engine.Config{OnEvent: events.On})
//
// [Events] counts the events of any number of engines, by kind and queue;
// [Figures] passes on what one engine counts of itself; [Store] passes on what
// waits in a store, which is for one program of all that share it. They are
// collectors, registered where the program registers its own.
//
// Names begin with stint_, times are in seconds. Kinds and queues are bounded: a
// series is made for the first hundred of each (see [Config]), and what comes
// after them counts as "other", so that whoever enqueues cannot fill the
// memory of the monitoring.
package prom
