package main

import (
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strconv"
)

func (s *shop) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /orders", s.postOrder)
	mux.HandleFunc("GET /orders/{id}", s.getOrder)
	return mux
}

func (s *shop) postOrder(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Item     string `json:"item"`
		Quantity int    `json:"quantity"`
	}
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<16))
	d.DisallowUnknownFields()
	if err := d.Decode(&in); err != nil {
		answer(w, http.StatusBadRequest, problem{"the body is no order: " + err.Error()})
		return
	}
	o, err := s.order(r.Context(), in.Item, in.Quantity)
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	w.Header().Set("Location", "/orders/"+strconv.FormatInt(o.ID, 10))
	answer(w, http.StatusCreated, o)
}

func (s *shop) getOrder(w http.ResponseWriter, r *http.Request) {
	id, err := strconv.ParseInt(r.PathValue("id"), 10, 64)
	if err != nil {
		answer(w, http.StatusNotFound, problem{errNoOrder.Error()})
		return
	}
	o, err := s.look(r.Context(), id)
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	answer(w, http.StatusOK, o)
}

type problem struct {
	Error string `json:"error"`
}

// refuse answers with what is wrong, as far as that is the customer's to know.
func (s *shop) refuse(w http.ResponseWriter, r *http.Request, err error) {
	switch {
	case errors.Is(err, errNoOrder):
		answer(w, http.StatusNotFound, problem{err.Error()})
	case errors.Is(err, errNoItem), errors.Is(err, errQuantity):
		answer(w, http.StatusUnprocessableEntity, problem{err.Error()})
	case errors.Is(err, errSoldOut):
		answer(w, http.StatusConflict, problem{err.Error()})
	default:
		slog.Error("request failed", "method", r.Method, "path", r.URL.Path, "error", err)
		answer(w, http.StatusInternalServerError, problem{"something went wrong here"})
	}
}

func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}
