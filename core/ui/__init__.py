"""What pages share on screen: the scope in the URL, cached reads, and the parts a page is made of."""
