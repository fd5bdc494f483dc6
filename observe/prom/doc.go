// Package prom exports metrics of engines and stores to Prometheus.
//
//	events := prom.NewEvents()
//	prometheus.MustRegister(events)
//	engine.New(store, mux, engine.Config{OnEvent: events.On})
//
// [Events] counts the events of any number of engines, by kind and queue. [Figures]
// exports the metrics that one engine keeps. [Store] exports the backlog and the schedules
// of a store; use it in one program of those that share the store. [BuildInfo] exports the
// version. All are collectors; register them like your own.
//
// Names begin with stint_, times are in seconds. Kinds, queues, limits and schedules are
// bounded: the first hundred of each have their own series (see [Config]), and all others
// count as "other", so that programs that enqueue cannot fill the memory of Prometheus.
package prom
