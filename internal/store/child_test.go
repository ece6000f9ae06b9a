package store_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"

	"thru/internal/measure"
	"thru/internal/store"
	"thru/internal/store/postgres"
	"thru/internal/watch/record"
)

// Environment of a child process: the store's file, the number of its first document,
// and after how many it ends (0: never).
const (
	childOf    = "THRU_TEST_STORE"
	childFirst = "THRU_TEST_FIRST"
	childCount = "THRU_TEST_COUNT"
)

// child writes to a store, and prints what was acknowledged.
func child(path string) int {
	first, _ := strconv.Atoi(os.Getenv(childFirst))
	count, _ := strconv.Atoi(os.Getenv(childCount))
	s, err := openAny(path)
	for i := 0; err == nil && (count == 0 || i < count); i++ {
		err = work(s, first+i)
	}
	if err == nil {
		err = s.Close()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// openAny opens a file, or an archive by its URL.
func openAny(path string) (store.Store, error) {
	if postgres.Is(path) {
		return postgres.Open(path, store.Options{})
	}
	return store.Open(path, store.Options{})
}

// work stores a document, and deletes every fifth one again. It stores samples of seven minutes, so that hours are packed now and then.
func work(s store.Store, i int) error {
	pair, minute := i/1000, i%1000*7
	var turns []record.Sample
	for m := range 7 {
		turns = append(turns, sampled(pair, minute+m)...)
	}
	if err := s.PutSamples(context.Background(), turns); err != nil {
		return err
	}
	fmt.Printf("sampled host-%d/%d -\n", pair, minute)
	doc := sized(i)
	id, err := s.Put(context.Background(), doc, "")
	if err != nil {
		return err
	}
	fmt.Printf("kept %s %s\n", id, fingerprint(doc))
	if i%5 != 0 {
		return nil
	}
	fmt.Printf("deleting %s -\n", id)
	if _, err = s.Delete(context.Background(), id); err == nil {
		fmt.Printf("deleted %s -\n", id)
	}
	return err
}

// sized returns a document of a length between 1 and 200 KB.
func sized(i int) *measure.Document {
	doc := document(i)
	r := rand.New(rand.NewPCG(7, uint64(i)))
	for range r.IntN(8) * r.IntN(8) * 100 {
		doc.Arguments = append(doc.Arguments, strconv.FormatUint(r.Uint64(), 36))
	}
	return doc
}

func fingerprint(doc *measure.Document) string {
	text, err := json.Marshal(measure.Complete(doc))
	return fmt.Sprintf("%x %v", sha256.Sum256(text), err)
}
