// Command hit comes three times to a point.
package main

import (
	"fmt"
	"os"

	"github.com/axctl/ax/failpoint"
)

func main() {
	for n := range 3 {
		failpoint.Hit(failpoint.Sent)
		failpoint.Hit(failpoint.Send)
		fmt.Fprintln(os.Stdout, n+1)
	}
}
