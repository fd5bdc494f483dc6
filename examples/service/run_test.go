package main

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/stint-go/stint/internal/proof/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func databaseOf(t *testing.T) string { return pgtest.New(t) }

func TestTheServiceTakesAndShipsUntilItIsStopped(t *testing.T) {
	url := databaseOf(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, url, listener) }()
	answer, err := http.Post("http://"+listener.Addr().String()+"/orders", "application/json", strings.NewReader(`{"item":"lamp"}`))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(answer.Body)
	_ = answer.Body.Close()
	if err != nil || answer.StatusCode != http.StatusCreated || string(text) != `{"id":1,"item":"lamp"}`+"\n" {
		t.Errorf("it answers %d %s, %v", answer.StatusCode, text, err)
	}
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	for shipped, until := 0, time.Now().Add(30*time.Second); shipped == 0; time.Sleep(5 * time.Millisecond) {
		if err := conn.QueryRow(t.Context(), `select count(*) from orders where shipped is not null`).Scan(&shipped); err != nil || time.Now().After(until) {
			t.Fatalf("the order is not shipped, %v", err)
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
