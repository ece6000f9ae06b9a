// Command thru proves what a network path carries, and explains why it does
// not carry more. See README.md.
package main

import (
	"os"

	"thru/internal/cli"
)

func main() { os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }
