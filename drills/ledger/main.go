// Command ledger is what the drilled tasks run, fifty a second and more: a
// program of its own, since to start one with all that the drills have in it
// would take more of the machine than axd does.
//
//	ledger FILE DURATION [LINES]
//
// It appends a line to FILE when it begins and one when it ends, each durable
// before it goes on. With a number of lines it prints them meanwhile, evenly.
package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

func main() {
	if err := work(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "ledger:", err)
		os.Exit(1)
	}
}

func work(args []string) error {
	lines := 0
	if len(args) == 3 {
		lines, _ = strconv.Atoi(args[2])
	} else if len(args) != 2 {
		return fmt.Errorf("want FILE DURATION [LINES]")
	}
	d, err := time.ParseDuration(args[1])
	if err != nil {
		return err
	}
	f, err := os.OpenFile(args[0], os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := enter(f, "start"); err != nil {
		return err
	}
	if lines == 0 {
		time.Sleep(d)
	}
	for i := range lines {
		fmt.Printf("line %d %s\n", i, strings.Repeat("x", i%97)) // drill upgrade knows them
		time.Sleep(d / time.Duration(lines))
	}
	return enter(f, "end")
}

// enter writes one line to the ledger, and to the log.
func enter(f *os.File, word string) error {
	line := fmt.Sprintf("%s %s %d %s %d\n", os.Getenv("AX_BATCH_NO"), os.Getenv("AX_ATTEMPT"), os.Getpid(), word, time.Now().UnixMilli())
	if _, err := f.WriteString(line); err != nil {
		return err
	}
	fmt.Print(line)
	return f.Sync()
}
