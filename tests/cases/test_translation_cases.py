from tests.cases.conftest import *
import resource
def test_x(trained):
    print(resource.getrusage(resource.RUSAGE_SELF))
    for l in open(trained.run.journal):
        if "scores" in l: print(l[:300])
    for x in trained.translator.translate([". bako", "bado limu .", "mäka 😀 søto mäka .", "😀", "mäka ❤️ .", "!", "mäka", "mäka </s> søto mäka .", "mäka "*6, "- "*20, "søto "*30]): print(x)
    print(toy.lexicon())
    assert 0
