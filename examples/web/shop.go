package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	_ "github.com/jackc/pgx/v5/stdlib"
	_ "github.com/ncruces/go-sqlite3/driver"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/postgres"
	"github.com/stint-go/stint/sqlite"
	"github.com/stint-go/stint/store"
)

// Shipment is what the job of an order is told.
type Shipment struct {
	Order int64 `json:"order"`
}

// Ship ships an order.
var Ship = stint.NewKind[Shipment]("ship", stint.Queue("shipping"))

// shopStore is what the shop needs of stint's.
type shopStore interface {
	store.Store
	store.Inspector
}

// shop keeps orders and stock in tables of its own, beside stint's.
type shop struct {
	db     *sql.DB
	store  shopStore
	client *stint.Client
	tx     func(*sql.Tx) stint.Tx // how this database's store knows a transaction
	close  func()
}

// The tables. Both databases understand everything but the order's number.
const (
	ordersSQL = `create table if not exists orders (
		id       %s,
		item     text not null,
		quantity integer not null check (quantity > 0),
		job      bigint,
		shipped  integer not null default 0)`
	stockSQL = `create table if not exists stock (item text primary key, quantity integer not null check (quantity >= 0))`
	goodsSQL = `insert into stock (item, quantity) values ('book', 1000), ('lamp', 20) on conflict (item) do nothing`
)

// open opens the database twice: for stint, and for the shop's own tables.
func open(ctx context.Context, db string) (*shop, error) {
	s, err := connect(ctx, db)
	if err != nil {
		return nil, err
	}
	s.client = stint.NewClient(s.store)
	number := "integer primary key"
	if _, ok := s.store.(*postgres.Store); ok {
		number = "bigint generated always as identity primary key"
	}
	for _, text := range []string{fmt.Sprintf(ordersSQL, number), stockSQL, goodsSQL} {
		if _, err := s.db.ExecContext(ctx, text); err != nil {
			s.Close()
			return nil, fmt.Errorf("make the tables: %w", err)
		}
	}
	return s, nil
}

func connect(ctx context.Context, db string) (*shop, error) {
	if strings.HasPrefix(db, "postgres://") || strings.HasPrefix(db, "postgresql://") {
		st, err := postgres.Open(ctx, db)
		if err != nil {
			return nil, err
		}
		pool, err := sql.Open("pgx", db)
		if err != nil {
			st.Close()
			return nil, err
		}
		pool.SetMaxOpenConns(16)
		return &shop{db: pool, store: st, tx: postgres.SQLTx, close: st.Close}, nil
	}
	st, err := sqlite.Open(ctx, db)
	if err != nil {
		return nil, err
	}
	// A file has one writer at a time, and SQLite lets those who wait for it try
	// again until their time is up, in no order. Waiting for the only connection
	// of a pool takes no CPU, keeps the order, and ends with the request.
	// A transaction takes the lock at its begin, where it may still wait for
	// other processes.
	pool, err := sql.Open("sqlite3", "file:"+db+"?_txlock=immediate&_pragma=busy_timeout(10000)")
	if err != nil {
		_ = st.Close()
		return nil, err
	}
	pool.SetMaxOpenConns(1)
	return &shop{db: pool, store: st, tx: sqlite.Tx, close: func() { _ = st.Close() }}, nil
}

// Close closes both.
func (s *shop) Close() {
	_ = s.db.Close()
	s.close()
}

// Order is one as its customer sees it.
type Order struct {
	ID       int64       `json:"id"`
	Item     string      `json:"item"`
	Quantity int         `json:"quantity"`
	Shipped  bool        `json:"shipped"`
	Job      stint.ID    `json:"job"`
	State    stint.State `json:"state"` // of the job
}

// What can be wrong with an order.
var (
	errNoItem   = errors.New("there is no such item")
	errSoldOut  = errors.New("there are not so many left")
	errNoOrder  = errors.New("there is no such order")
	errQuantity = errors.New("the quantity is not between 1 and 1000")
)

// order writes an order and enqueues its shipment. The job is one with the order:
// whatever fails after it, as the stock does here, takes it back.
func (s *shop) order(ctx context.Context, item string, quantity int) (Order, error) {
	o := Order{Item: item, Quantity: quantity, State: stint.Available}
	if quantity < 1 || quantity > 1000 {
		return o, errQuantity
	}
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return o, err
	}
	defer func() { _ = tx.Rollback() }()
	if err := tx.QueryRowContext(ctx, `insert into orders (item, quantity) values ($1, $2) returning id`, item, quantity).Scan(&o.ID); err != nil {
		return o, fmt.Errorf("write the order: %w", err)
	}
	o.Job, err = Ship.Enqueue(ctx, s.client.With(s.tx(tx)), Shipment{o.ID}, stint.URN(fmt.Sprintf("order:%d", o.ID)))
	if err != nil {
		return o, fmt.Errorf("enqueue the shipment: %w", err)
	}
	if _, err := tx.ExecContext(ctx, `update orders set job = $1 where id = $2`, int64(o.Job), o.ID); err != nil {
		return o, fmt.Errorf("note the job: %w", err)
	}
	if err := take(ctx, tx, item, quantity); err != nil {
		return o, err
	}
	return o, tx.Commit()
}

// take takes goods from the stock.
func take(ctx context.Context, tx *sql.Tx, item string, quantity int) error {
	r, err := tx.ExecContext(ctx, `update stock set quantity = quantity - $1 where item = $2 and quantity >= $1`, quantity, item)
	if err != nil {
		return fmt.Errorf("take from the stock: %w", err)
	}
	if n, err := r.RowsAffected(); err != nil || n == 1 {
		return err
	}
	var left int
	err = tx.QueryRowContext(ctx, `select quantity from stock where item = $1`, item).Scan(&left)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return errNoItem
	case err != nil:
		return err
	}
	return fmt.Errorf("%w: %d", errSoldOut, left)
}

// look shows an order and what became of its job.
func (s *shop) look(ctx context.Context, id int64) (Order, error) {
	o := Order{ID: id}
	err := s.db.QueryRowContext(ctx, `select item, quantity, shipped <> 0, job from orders where id = $1`, id).
		Scan(&o.Item, &o.Quantity, &o.Shipped, &o.Job)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return o, errNoOrder
	case err != nil:
		return o, fmt.Errorf("read the order: %w", err)
	}
	job, err := s.store.Job(ctx, o.Job)
	switch {
	case errors.Is(err, stint.ErrNotFound): // it is long over, and was cleared away
		o.State = stint.Completed
	case err != nil:
		return o, err
	default:
		o.State = job.State
	}
	return o, nil
}

// shipOne marks an order as shipped, and its job as completed, in one
// transaction: no order is shipped twice, whatever is killed when.
func (s *shop) shipOne(ctx context.Context, _ *stint.Job, in Shipment) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	if _, err := tx.ExecContext(ctx, `update orders set shipped = shipped + 1 where id = $1`, in.Order); err != nil {
		return fmt.Errorf("ship order %d: %w", in.Order, err)
	}
	return engine.CompleteTx(ctx, s.tx(tx), nil)
}
