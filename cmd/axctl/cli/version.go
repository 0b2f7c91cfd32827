package cli

import (
	"runtime"

	"github.com/spf13/cobra"

	"github.com/axctl/ax/schedule"
)

func versionCommand(c *call) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the versions of axctl, Go and the time zone data",
		Args:  argumentCount(0, 0),
		RunE: func(*cobra.Command, []string) error {
			return c.print(versionResult{Ax: c.env.Version, Go: runtime.Version(), TZData: schedule.TZDataVersion()})
		},
	}
}

type versionResult struct{ Ax, Go, TZData string }

func (v versionResult) human(s *screen) {
	s.line("axctl %s", v.Ax)
	s.line("%s %s/%s", v.Go, runtime.GOOS, runtime.GOARCH)
	s.line("tzdata %s", v.TZData)
}

func (v versionResult) json() document {
	return document{"version": v.Ax, "go": v.Go, "tzdata": v.TZData, "platform": runtime.GOOS + "/" + runtime.GOARCH}
}
