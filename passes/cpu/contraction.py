"""stand-in"""
NAME="contraction"
def matches(body): return False
choose=None
realise=None
