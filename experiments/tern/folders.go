package tern

import (
	"fmt"
	"os"

	"github.com/heddle-dmt/heddle/analyses/symbolic"
	"github.com/heddle-dmt/heddle/internal/machine"
)

// folderTerms returns terms that fix the arguments which name folders: the contents of
// folders, and whether they exist, are no input (files that arguments name are).
func folderTerms(p *symbolic.Pool, c *machine.Config) []*symbolic.Expr {
	var terms []*symbolic.Expr
	for i, a := range c.Args {
		if info, err := os.Stat(hostPath(c, a)); i == 0 || err != nil || !info.IsDir() {
			continue
		}
		for k, b := range []byte(a + "\x00") {
			terms = append(terms, p.Eq(p.Symbol(fmt.Sprintf("argv[%d][%d]", i, k), 8), p.Word(uint64(b), 8)))
		}
	}
	return terms
}
