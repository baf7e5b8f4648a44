package memo

import (
	"fmt"
	"os"

	"github.com/heddle-dmt/heddle"
	"github.com/heddle-dmt/heddle/analyses/symbolic"
)

// folders says that arguments are what they were if they name folders: what is in those,
// and whether there are such, is no input (files that arguments name are).
func folders(p *symbolic.Pool, c *heddle.Config) []*symbolic.Expr {
	var terms []*symbolic.Expr
	for i, a := range c.Args {
		if info, err := os.Stat(hosts(c, a)); i == 0 || err != nil || !info.IsDir() {
			continue
		}
		for k, b := range []byte(a + "\x00") {
			terms = append(terms, p.Eq(p.Symbol(fmt.Sprintf("argv[%d][%d]", i, k), 8), p.Word(uint64(b), 8)))
		}
	}
	return terms
}
